//go:build tools

// Package helm names the program that is built: Helm's own command.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
