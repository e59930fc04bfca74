// Trainer runs the Kubeflow Trainer's own controllers, without its webhooks, whose certificates
// must lie in a fixed directory. Its argument is the address of its health probe.
package main

import (
	"flag"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlpkg "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/controller"
	runtimecore "github.com/kubeflow/trainer/v2/pkg/runtime/core"
)

func main() {
	flag.Parse() // --kubeconfig
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		clientgoscheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme, schedulerplugins.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: flag.Arg(0),
	})
	utilruntime.Must(err)
	utilruntime.Must(manager.AddReadyzCheck("readyz", healthz.Ping))
	ctx := ctrl.SetupSignalHandler()
	runtimes, err := runtimecore.New(ctx, manager.GetClient(), manager.GetFieldIndexer(), nil)
	utilruntime.Must(err)
	_, err = controller.SetupControllers(manager, runtimes, ctrlpkg.Options{})
	utilruntime.Must(err)
	utilruntime.Must(manager.Start(ctx))
}
