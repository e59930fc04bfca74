//go:build tools

// Package controller names the program that is built: Kueue's own controller manager.
package controller

import _ "sigs.k8s.io/kueue/cmd/kueue"
