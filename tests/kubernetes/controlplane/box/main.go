// Controlplane is one program that holds every process of a Kubernetes control plane for tests:
// its first argument names the process to be, the rest are that process's own flags.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var processes = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(manager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 func() int { return cli.Run(kubectl.NewDefaultKubectlCommand()) },
	"kwok":                    kwok,
}

func main() {
	if len(os.Args) > 1 {
		if run, ok := processes[os.Args[1]]; ok {
			os.Args = os.Args[1:] // each process finds its own name first, as if it were called alone
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(processes))
	for name := range processes {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: controlplane %s [flags]\n", strings.Join(names, "|"))
	os.Exit(2)
}
