package scriptednode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// canaryManifest is written as a person writes it, so that a run with -f reads
// what users have.
const canaryManifest = `apiVersion: v1
kind: Pod
metadata:
  name: {canary}
  namespace: {namespace}
  labels:
    app.kubernetes.io/name: {canary}
  annotations:
    k8s.v1.cni.cncf.io/networks: '[{"name":"{network}","namespace":"{namespace}","ips":["{address}"]}]'
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  nodeSelector:
    kubernetes.io/hostname: {node}
  initContainers:
  - name: {guard}
    image: {image}
    command: ["sh", "/guard/guard.sh"]
    env:
    - name: ADDRESS
      value: {address}
    securityContext:
      capabilities:
        add: ["NET_RAW"]
    volumeMounts:
    - name: guard
      mountPath: /guard
      readOnly: true
  containers:
  - name: {main}
    image: {image}
    command: ["sh", "-c", "ip -4 addr show net1"]
  volumes:
  - name: guard
    configMap:
      name: {guard}
`

// guardScript is the guard that the scripted containers pretend to run.
const guardScript = `#!/bin/sh
# Proves the second network from inside, before the canary's container starts.
set -eu
say() { echo "$1"; echo "$1" > /dev/termination-log; }
address=${ADDRESS%/*}
for _ in $(seq 1 30); do
  ip -4 addr show net1 2>/dev/null | grep -q "inet $address/" && break
  sleep 1
done
ip -4 addr show net1 2>/dev/null | grep -q "inet $address/" || { say "timed out waiting for net1"; exit 1; }
arping -D -q -c 2 -I net1 "$address" || { say "duplicate address $address"; exit 1; }
say "net1 has $address"
`

// CanaryManifest is the canary as a user would pass it with -f.
func (s Site) CanaryManifest() []byte {
	return []byte(strings.NewReplacer(
		"{canary}", s.Canary,
		"{namespace}", s.Namespace,
		"{network}", s.Network,
		"{address}", s.Address.String(),
		"{node}", s.Node,
		"{guard}", s.Guard,
		"{main}", s.Main,
		"{image}", s.Images.Canary,
	).Replace(canaryManifest))
}

// CanaryPod is the Pod of CanaryManifest.
func (s Site) CanaryPod() (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(s.CanaryManifest(), pod); err != nil {
		return nil, fmt.Errorf("reading the canary's manifest: %w", err)
	}
	return pod, nil
}
