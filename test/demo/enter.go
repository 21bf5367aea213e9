package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// DEMO_STAGE=scripted keeps the demo from using the lab where it could, and
// DEMO_STAGE=lab from going on without one.
const stageVariable = "DEMO_STAGE"

// stages are the ways to a stage. missing says why the lab cannot be used; empty
// where it can.
type stages struct {
	missing  func(ctx context.Context) string
	lab      func(ctx context.Context, out io.Writer) (stage, error)
	scripted func(ctx context.Context, dir string, out io.Writer) (stage, error)
}

// enter takes the lab where it can be had, else the scripted node, and says
// which.
func (s stages) enter(ctx context.Context, wanted, dir string, out io.Writer) (stage, error) {
	why := "it was asked for by " + stageVariable
	switch wanted {
	case "scripted":
	case "", "lab":
		if why = s.missing(ctx); why == "" {
			fmt.Fprintln(out, "This demo uses the lab: a real node with real Multus, in namespaces of its own.")
			on, err := s.lab(ctx, out)
			if err == nil || wanted == "lab" || ctx.Err() != nil {
				return on, err
			}
			fmt.Fprintln(out, "the lab could not be started:", strings.ReplaceAll(err.Error(), "\n", "; "))
			why = "there is no lab"
		}
		if wanted == "lab" {
			return nil, fmt.Errorf("%s=lab, and there is none: %s", stageVariable, why)
		}
	default:
		return nil, fmt.Errorf("%s=%q: it is lab or scripted", stageVariable, wanted)
	}
	fmt.Fprintf(out, "This demo uses a scripted node, as %s: the API server is real, kubelet and Multus are played.\n", why)
	return s.scripted(ctx, dir, out)
}
