package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// pages serves the Pods' metadata in two pages, and notes what it was asked.
func pages(t *testing.T) (clients *Clients, asked func() []string) {
	t.Helper()
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Path+"?"+r.URL.RawQuery)
		list := metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		}
		names := []string{"a", "b"}
		if list.Continue = "more"; r.URL.Query().Get("continue") == "more" {
			list.Continue, names = "", []string{"c"}
		}
		for _, name := range names {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	clients, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.CloseClientConnections)
	return clients, func() []string { return queries }
}

func TestEachPodMeta(t *testing.T) {
	clients, asked := pages(t)
	var seen []string
	err := clients.EachPodMeta(t.Context(), 2, func(meta *metav1.PartialObjectMetadata) error {
		seen = append(seen, meta.Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, seen); diff != "" {
		t.Errorf("visited (-want +got):\n%s", diff)
	}
	// The lists alone: no discovery.
	if diff := cmp.Diff([]string{"/api/v1/pods?limit=2", "/api/v1/pods?continue=more&limit=2"}, asked()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestEachPodMetaIn(t *testing.T) {
	clients, asked := pages(t)
	if err := clients.EachPodMetaIn(t.Context(), "ns", 500, func(*metav1.PartialObjectMetadata) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := asked()[0], "/api/v1/namespaces/ns/pods?limit=500"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

func TestEachPodMetaEndsWithItsVisitor(t *testing.T) {
	clients, asked := pages(t)
	err := clients.EachPodMeta(t.Context(), 2, func(*metav1.PartialObjectMetadata) error { return errAway })
	if !errors.Is(err, errAway) || len(asked()) != 1 {
		t.Errorf("error %v after %v", err, asked())
	}
}

func TestEachPodMetaTellsTrouble(t *testing.T) {
	clients, err := New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := clients.EachPodMeta(t.Context(), 2, func(*metav1.PartialObjectMetadata) error { return nil }); err == nil {
		t.Error("no error of a server that is not there")
	}
}

// The user's own limits stay; without any, those of client-go would delay a run.
func TestNewSetsLimits(t *testing.T) {
	for name, test := range map[string]struct {
		config rest.Config
		want   float32
	}{
		"none given": {rest.Config{Host: "http://127.0.0.1:1"}, qps},
		"given":      {rest.Config{Host: "http://127.0.0.1:1", QPS: 7, Burst: 9}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.config.QPS
			clients, err := New(&test.config)
			if err != nil {
				t.Fatal(err)
			}
			if got := clients.Core.RESTClient().GetRateLimiter().QPS(); got != test.want {
				t.Errorf("%v requests a second, want %v", got, test.want)
			}
			if test.config.QPS != before {
				t.Error("the caller's configuration was changed")
			}
		})
	}
}

func TestNewRefusesABrokenConfiguration(t *testing.T) {
	if _, err := New(&rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere/ca.crt"}}); err == nil {
		t.Error("a certificate authority that is not there was accepted")
	}
}

func TestAnswered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(pods, "canary", nil)
	tests := map[string]struct {
		err  error
		want bool
	}{
		"forbidden":       {forbidden, true},
		"conflict":        {apierrors.NewConflict(pods, "canary", nil), true},
		"wrapped":         {fmt.Errorf("x: %w", forbidden), true},
		"too busy":        {apierrors.NewTooManyRequests("later", 1), false},
		"in trouble":      {apierrors.NewInternalError(errors.New("x")), false},
		"timed out":       {apierrors.NewTimeoutError("x", 1), false},
		"not reached":     {&url.Error{Op: "Get", URL: "https://192.0.2.1", Err: errors.New("connection refused")}, false},
		"out of time":     {context.DeadlineExceeded, false},
		"no error at all": {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Answered(test.err); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := Pause(ctx, time.Hour); !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
	})
}
