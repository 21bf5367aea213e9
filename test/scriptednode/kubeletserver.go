package scriptednode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

// kubeletServer is the part of a kubelet's API that serves container logs.
type kubeletServer struct {
	port   int32
	server *http.Server
	done   chan struct{}
}

// startKubelet serves the book's logs on a free loopback port, with a
// certificate of its own: the API server does not check it.
func startKubelet(ctx context.Context, book *logBook) (*kubeletServer, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("making the kubelet's certificate: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(hostIP, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening as the kubelet: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(errors.New("listening as the kubelet: no TCP address"), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", book.serve)
	s := &kubeletServer{
		port: int32(address.Port),
		server: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 10 * time.Second,
			TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			// Followers end with the node.
			BaseContext: func(net.Listener) context.Context { return ctx },
			ErrorLog:    log.New(io.Discard, "", 0),
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.server.ServeTLS(listener, "", "") // always ends with ErrServerClosed
	}()
	return s, nil
}

// stop closes all connections: the API server may hold some for long.
func (s *kubeletServer) stop() {
	_ = s.server.Close()
	<-s.done
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.ParseIP(hostIP)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
