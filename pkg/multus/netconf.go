package multus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// NetConf is what matters of one CNI plugin's configuration.
type NetConf struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Master     string `json:"master"`
	Mode       string `json:"mode"`
	// VLANID is the vlan plugin's; Bridge and VLAN are the bridge plugin's.
	VLANID       int             `json:"vlanId"`
	Bridge       string          `json:"bridge"`
	VLAN         int             `json:"vlan"`
	Capabilities map[string]bool `json:"capabilities"`
	IPAM         IPAM            `json:"ipam"`
	// Plugins is the whole chain; a single configuration is a chain of one.
	Plugins []NetConf `json:"plugins"`
}

// IPAM is the address management of a configuration.
type IPAM struct {
	Type      string          `json:"type"`
	Addresses []StaticAddress `json:"addresses"`
}

// StaticAddress is one entry of static IPAM.
type StaticAddress struct {
	Address string `json:"address"`
	Gateway string `json:"gateway"`
}

// ErrNoConfig says that a NetworkAttachmentDefinition has no CNI configuration,
// so that Multus would look for a file on the node.
var ErrNoConfig = errors.New("spec.config is empty")

// ParseNetConf reads a NetworkAttachmentDefinition's spec.config, a single
// configuration or a list. The attaching plugin's fields (the first one's) are
// lifted to the top, so that callers need not know which form it was.
func ParseNetConf(config string) (NetConf, error) {
	if strings.TrimSpace(config) == "" {
		return NetConf{}, ErrNoConfig
	}
	var conf NetConf
	var typeErr *json.UnmarshalTypeError
	err := json.Unmarshal([]byte(config), &conf)
	// A field of a type that only its own plugin knows is no fault here: the
	// decoder goes on behind it.
	if err != nil && (!errors.As(err, &typeErr) || !strings.HasPrefix(strings.TrimSpace(config), "{")) {
		return NetConf{}, fmt.Errorf("spec.config is not valid: %w", err)
	}
	if len(conf.Plugins) == 0 {
		if conf.Type == "" {
			return conf, errors.New("spec.config has neither a type nor plugins")
		}
		single := conf
		single.Plugins = nil
		conf.Plugins = []NetConf{single}
		return conf, nil
	}
	first := conf.Plugins[0]
	if first.Type == "" {
		return conf, errors.New("the first plugin of spec.config has no type")
	}
	conf.Type, conf.Master, conf.Mode = first.Type, first.Master, first.Mode
	conf.VLANID, conf.Bridge, conf.VLAN = first.VLANID, first.Bridge, first.VLAN
	conf.Capabilities, conf.IPAM = first.Capabilities, first.IPAM
	return conf, nil
}

// RequestedAddresses gives the addresses one selection asks for: its own
// ("ips", then "ips" in cni-args) or, where it asks for none, those of the
// configuration's static IPAM. Entries that are no address are left out:
// whether they are valid is AddressErrors' business.
func RequestedAddresses(sel Selection, conf NetConf) []netip.Addr {
	var addrs []netip.Addr
	for _, t := range requestedTexts(sel, conf) {
		if a, ok := ParseAddress(t); ok {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// RequestedPrefixes gives the segments those addresses lie in, as far as they
// come with a prefix length.
func RequestedPrefixes(sel Selection, conf NetConf) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, t := range requestedTexts(sel, conf) {
		if p, err := netip.ParsePrefix(strings.TrimSpace(t)); err == nil {
			prefixes = append(prefixes, p.Masked())
		}
	}
	return prefixes
}

// requestedTexts gives what RequestedAddresses reads.
func requestedTexts(sel Selection, conf NetConf) []string {
	if texts := ownTexts(sel); len(texts) > 0 {
		return texts
	}
	if conf.IPAM.Type != "static" && conf.IPAM.Type != "" {
		return nil
	}
	var texts []string
	for _, a := range conf.IPAM.Addresses {
		texts = append(texts, a.Address)
	}
	return texts
}

func ownTexts(sel Selection) []string {
	if len(sel.IPRequest) > 0 {
		return sel.IPRequest
	}
	if sel.CNIArgs == nil {
		return nil
	}
	switch ips := (*sel.CNIArgs)["ips"].(type) {
	case string:
		return strings.Split(ips, ",")
	case []any:
		var texts []string
		for _, ip := range ips {
			if s, ok := ip.(string); ok {
				texts = append(texts, s)
			}
		}
		return texts
	}
	return nil
}

// AddressErrors names the requested addresses that are not valid, and those
// without a prefix, which the static IPAM plugin refuses.
func AddressErrors(sel Selection) []error {
	var errs []error
	for _, t := range ownTexts(sel) {
		t = strings.TrimSpace(t)
		if _, ok := ParseAddress(t); !ok {
			errs = append(errs, fmt.Errorf("%q is no IP address", t))
		} else if !strings.Contains(t, "/") {
			errs = append(errs, fmt.Errorf("%q has no prefix length", t))
		}
	}
	return errs
}

// ParseAddress reads an address with or without prefix length. IPv4 written in
// IPv6 form compares equal to IPv4.
func ParseAddress(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}
