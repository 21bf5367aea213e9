//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Services lists the node's services in the order of their start.
func (n Node) Services(ctx context.Context) ([]node.ServiceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	body, err := n.control(ctx, http.MethodGet, "/services")
	if err != nil {
		return nil, err
	}
	var all []node.ServiceStatus
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("reading the node's services: %w", err)
	}
	return all, nil
}

// StartService starts a service that is not running.
func (n Node) StartService(ctx context.Context, name string) error {
	return n.service(ctx, name, "start")
}

// StopService ends a service in good order.
func (n Node) StopService(ctx context.Context, name string) error {
	return n.service(ctx, name, "stop")
}

// KillService ends a service without a chance to say goodbye.
func (n Node) KillService(ctx context.Context, name string) error {
	return n.service(ctx, name, "kill")
}

func (n Node) service(ctx context.Context, name, action string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if _, err := n.control(ctx, http.MethodPost, "/services/"+name+"/"+action); err != nil {
		return fmt.Errorf("%s %s: %w", action, name, err)
	}
	return nil
}

// control talks to the node over the socket in the state folder.
func (n Node) control(ctx context.Context, method, path string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, node.ControlSocket(n.name)))
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}
