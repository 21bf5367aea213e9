// Package apiserver runs a real kube-apiserver (with etcd inside) for tests and
// for the demo. RBAC is on; no controller, scheduler or kubelet runs beside it.
package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// Program is the control plane's build.
func Program() buildcache.Program {
	return buildcache.Program{
		Name:    "controlplane",
		Module:  "test/cluster",
		Package: "./cmd/controlplane",
		Cold:    15 * time.Minute,
	}
}

// readyWithin is far above the five seconds a start takes on two idle cores.
const readyWithin = 3 * time.Minute

// Server is one running control plane.
type Server struct {
	binary, dir string
	port        int
	process     *exec.Cmd
	stdin       io.Closer
	log         *os.File
	exited      chan struct{}
}

// Start builds the control plane if need be and starts it on a free loopback
// port; all its files go below dir.
func Start(ctx context.Context, dir string, progress io.Writer) (*Server, error) {
	binary, err := buildcache.Build(ctx, Program(), progress)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{binary: binary, dir: dir, port: port}
	return s, s.start(ctx)
}

func (s *Server) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	s.log, err = os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// Not bound to ctx: the server outlives the call that started it.
	cmd := exec.Command(s.binary, //nolint:noctx // ended by Stop and by the end of its standard input
		"--dir="+s.dir, "--secure-port="+strconv.Itoa(s.port), "--exit-with-stdin", "--",
		"--disable-admission-plugins=ServiceAccount")
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	s.process, s.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(s.exited)
	if err := s.waitReady(ctx); err != nil {
		s.Kill()
		return err
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.exited:
			return fmt.Errorf("the control plane ended before it was ready:\n%s", s.lastLog())
		case <-ctx.Done():
			return fmt.Errorf("the control plane is not ready: %w\n%s", context.Cause(ctx), s.lastLog())
		case <-tick.C:
			if s.ready(ctx) {
				return nil
			}
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	config, err := s.Config()
	if err != nil {
		return false
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Config is the cluster administrator's access, without client-side limits.
func (s *Server) Config() (*rest.Config, error) {
	tokens, err := os.ReadFile(filepath.Join(s.dir, "tokens.csv"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(s.dir, "certs", "apiserver.crt"))
	if err != nil {
		return nil, err
	}
	token, _, _ := strings.Cut(string(tokens), ",")
	return &rest.Config{
		Host:            s.Host(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             -1,
	}, nil
}

// Host is the server's URL.
func (s *Server) Host() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// AuditLog is the path of the log of all requests, one JSON object a line.
func (s *Server) AuditLog() string { return filepath.Join(s.dir, "audit.log") }

// Restart ends the server at once, as a crash does, and starts it again on the
// same data and port.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	return s.start(ctx)
}

// Stop asks the server to end and waits until it has.
func (s *Server) Stop() {
	s.end(func() { _ = s.stdin.Close() })
}

// Kill ends the server without a chance to say goodbye.
func (s *Server) Kill() {
	s.end(func() { _ = s.process.Process.Kill() })
}

// end waits ten seconds for the server after how, then kills it.
func (s *Server) end(how func()) {
	how()
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		_ = s.process.Process.Kill()
		<-s.exited
	}
	_ = s.log.Close()
}

// lastLog is the end of what the server printed.
func (s *Server) lastLog() string {
	data, err := os.ReadFile(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no TCP port")
	}
	return address.Port, nil
}
