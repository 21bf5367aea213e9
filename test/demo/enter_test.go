package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// named is a stage that the test knows again.
type named struct {
	stage

	name string
}

func (n named) String() string { return n.name }

func TestEnter(t *testing.T) {
	for _, test := range []struct {
		name, wanted string
		// missing and fails are why there is no lab, or none could be started.
		missing, fails string
		interrupted    bool
		// want is the stage or the error, said is part of the output.
		want, said string
	}{
		{name: "a lab", want: "lab", said: "uses the lab"},
		{name: "no lab on this machine", missing: "no root", want: "scripted", said: "as no root:"},
		{name: "no lab could be started", fails: "no memory\nthe logs are here", want: "scripted", said: "\nthe lab could not be started: no memory; the logs are here\n"},
		{name: "the start was interrupted", fails: "interrupted", interrupted: true, want: "error: interrupted"},
		{name: "the scripted node", wanted: "scripted", want: "scripted", said: "asked for by"},
		{name: "nothing but the lab", wanted: "lab", want: "lab", said: "uses the lab"},
		{name: "nothing but the lab, and none can be", wanted: "lab", missing: "no root", want: "error: DEMO_STAGE=lab, and there is none: no root"},
		{name: "nothing but the lab, and none could be started", wanted: "lab", fails: "no memory", want: "error: no memory"},
		{name: "a slip", wanted: "labb", want: `error: DEMO_STAGE="labb": it is lab or scripted`},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			all := stages{
				missing: func(context.Context) string { return test.missing },
				lab: func(context.Context, io.Writer) (stage, error) {
					if test.interrupted {
						cancel()
					}
					if test.fails != "" {
						return nil, errors.New(test.fails)
					}
					return named{name: "lab"}, nil
				},
				scripted: func(context.Context, string, io.Writer) (stage, error) { return named{name: "scripted"}, nil },
			}
			var out bytes.Buffer
			on, err := all.enter(ctx, test.wanted, t.TempDir(), &out)
			got := fmt.Sprint(on)
			if err != nil {
				got = "error: " + err.Error()
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
			if !strings.Contains(out.String(), test.said) {
				t.Errorf("it does not say %q:\n%s", test.said, &out)
			}
		})
	}
}
