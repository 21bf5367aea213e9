//go:build linux

package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
)

// serveControl takes commands over a socket in the state folder:
// GET /services lists them, POST /services/NAME/{start,stop,kill} acts, and
// POST /second/{start,stop} at the first node acts on the second one.
func serveControl(ctx context.Context, s *supervisor) error {
	path := stateDir + "/" + ControlSocket(s.machine.name)
	// One that was killed has left its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /services", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.status())
	})
	for action, do := range map[string]func(string) error{
		"start": s.start,
		"stop":  func(name string) error { return s.stop(name, syscall.SIGTERM) },
		"kill":  func(name string) error { return s.stop(name, syscall.SIGKILL) },
	} {
		mux.HandleFunc("POST /services/{name}/"+action, func(w http.ResponseWriter, r *http.Request) {
			answer(w, do(r.PathValue("name")))
		})
	}
	if s.machine.name == Name {
		var joined neighbour
		mux.HandleFunc("POST /second/start", func(w http.ResponseWriter, r *http.Request) { answer(w, joined.start(r.Context())) })
		mux.HandleFunc("POST /second/stop", func(w http.ResponseWriter, r *http.Request) { answer(w, joined.stop(r.Context())) })
	}
	go func() { _ = http.Serve(listener, mux) }() //nolint:gosec // one local client; it ends with the lab
	return nil
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// forward carries what comes in at a listener of the host to the API server.
// The listener was opened by the host side: a socket belongs to the network
// namespace it was made in, whoever accepts from it.
func forward(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := new(net.Dialer).DialContext(ctx, "tcp", address+":443")
			if err != nil {
				client.Close()
				return
			}
			go pipe(client, server)
			pipe(server, client)
		}()
	}
}

// pipe copies until either side ends, and then ends both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}
