//go:build tools

// Package controller names the program that is built: JobSet's own controller manager.
package controller

import _ "sigs.k8s.io/jobset"
