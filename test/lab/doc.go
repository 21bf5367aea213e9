// Package lab runs a real cluster of one node, or two, with real Multus on a
// bare Linux machine, without a container engine: for trying the plugin by hand
// and for the tests that only a node can settle.
package lab
