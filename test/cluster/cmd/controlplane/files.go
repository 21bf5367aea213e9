package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/server/v3/embed"
)

// files are the inputs of kube-apiserver in the control plane's directory.
type files struct{ certs, key, tokens, policy, audit string }

// auditPolicy logs who asked for what, without bodies: enough to count a
// command's requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// prepare makes what is missing and keeps what is there.
func prepare(dir string) (files, error) {
	f := files{
		certs:  filepath.Join(dir, "certs"),
		key:    filepath.Join(dir, "service-account.key"),
		tokens: filepath.Join(dir, "tokens.csv"),
		policy: filepath.Join(dir, "audit-policy.yaml"),
		audit:  filepath.Join(dir, "audit.log"),
	}
	if err := os.MkdirAll(f.certs, 0o700); err != nil {
		return f, err
	}
	for _, missing := range []struct {
		path    string
		content func() ([]byte, error)
	}{
		{f.key, newKey},
		{f.tokens, newTokens},
		{f.policy, func() ([]byte, error) { return []byte(auditPolicy), nil }},
	} {
		if err := writeMissing(missing.path, missing.content); err != nil {
			return f, err
		}
	}
	return f, nil
}

func writeMissing(path string, content func() ([]byte, error)) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := content()
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, data, 0o600)
}

// newKey is the key that signs service account tokens.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// newTokens has one cluster administrator; tests impersonate everybody else.
func newTokens() ([]byte, error) {
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s,admin,admin,system:masters\n", hex.EncodeToString(token)), nil
}

// flags are the arguments of kube-apiserver that a cluster without other
// components needs.
func (f files) flags(etcd, address string, port int) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + address,
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + f.certs,
		"--token-auth-file=" + f.tokens,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + f.key,
		"--service-account-signing-key-file=" + f.key,
		"--service-cluster-ip-range=10.43.0.0/16",
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + f.policy,
		"--audit-log-path=" + f.audit,
	}
}

// loopback gives etcd free ports on loopback.
func loopback(config *embed.Config) error {
	free, err := url.Parse("http://127.0.0.1:0")
	if err != nil {
		return err
	}
	config.ListenClientUrls = []url.URL{*free}
	config.AdvertiseClientUrls = []url.URL{*free}
	config.ListenPeerUrls = []url.URL{*free}
	config.AdvertisePeerUrls = []url.URL{*free}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return nil
}
