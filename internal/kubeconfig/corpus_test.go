// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// operator are the rules of a hub whose operator set no flag that lifts one. The corpus is held against them.
var operator = kubeconfig.Rules{
	ForbiddenHosts: []kubeconfig.HostPort{{Host: "hub.example.org"}},
	ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:0"), netip.MustParseAddrPort("192.0.2.10:6443")},
	ForbiddenCIDRs: prefixes("10.244.0.0/16"),
	ServiceCIDRs:   prefixes("10.96.0.0/16"),
}

// lift sets one flag, as far as it goes.
var lift = map[string]func(*kubeconfig.Rules){
	kubeconfig.FlagHTTP:        func(r *kubeconfig.Rules) { r.AllowHTTP = true },
	kubeconfig.FlagInsecureTLS: func(r *kubeconfig.Rules) { r.AllowInsecureTLS = true },
	kubeconfig.FlagMissingCA:   func(r *kubeconfig.Rules) { r.AllowMissingCA = true },
	kubeconfig.FlagProxy:       func(r *kubeconfig.Rules) { r.AllowProxy = true },
	kubeconfig.FlagServices:    func(r *kubeconfig.Rules) { r.AllowServices = true },
	kubeconfig.FlagTargetCIDRs: func(r *kubeconfig.Rules) {
		r.AllowedCIDRs = prefixes("0.0.0.0/0", "::/0", "169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128")
	},
}

// acceptance is what is read from a kubeconfig of the corpus.
type acceptance struct {
	server     string
	login      string // which credentials: certificate, token, password
	serverName string
	expires    time.Time
}

// refusal is why a kubeconfig of the corpus is refused.
type refusal struct {
	reason, field string
	text          string // part of the message
	flag          string // that lifts the rule
	then          string // the reason to refuse it still, with the flag; "" if it is accepted then
}

// accepted says what is read from each kubeconfig. Those that are not here are in refused.
var accepted = map[string]acceptance{
	"aks-admin":            {server: "https://fleet-dns-1a2b3c4d.hcp.westeurope.azmk8s.io:443", login: "certificate token", expires: certExpiry},
	"capa-eks-value":       {server: "https://0123456789abcdef0123456789abcdef.gr7.eu-central-1.eks.amazonaws.com:443", login: "token"},
	"capi-kcp":             {server: "https://[2001:db8::10]:6443", login: "certificate", expires: certExpiry},
	"folded":               {server: "https://api.example.org:6443", login: "token"},
	"gardener":             {server: "https://api.fleet.dev.example.org:443", login: "certificate", expires: certExpiry},
	"gke-serviceaccount":   {server: "https://34.90.1.2:443", login: "token", serverName: "kubernetes.example.org", expires: tokenExpiry},
	"host-hub-other-port":  {server: "https://192.0.2.10:7443", login: "token"},
	"hypershift":           {server: "https://a0123456789abcdef-0123456789abcdef.elb.eu-central-1.amazonaws.com:6443", login: "certificate", expires: certExpiry},
	"idn-punycode":         {server: "https://xn--bcher-kva.example.org:443", login: "token"},
	"k3s-exported":         {server: "https://k3s.example.org:6443", login: "certificate", expires: certExpiry},
	"kamaji-admin-conf":    {server: "https://172.18.255.200:6443", login: "certificate", expires: certExpiry},
	"kind-internal":        {server: "https://fleet-control-plane:6443", login: "certificate", expires: certExpiry},
	"many-contexts":        {server: "https://c199.example.org:6443", login: "token"},
	"minikube-embedded":    {server: "https://192.168.49.2:8443", login: "certificate", expires: certExpiry},
	"no-current-context":   {server: "https://api.example.org:6443", login: "token"},
	"openshift":            {server: "https://api.ocp.example.org:6443", login: "token"},
	"other-context-is-odd": {server: "https://good.example.org:6443", login: "token"},
	"password":             {server: "https://api.example.org:6443", login: "password"},
	"rancher-direct":       {server: "https://203.0.113.7:6443", login: "token"},
	"hypershift-internal":  {server: "https://kube-apiserver:6443", login: "certificate", expires: certExpiry},
	"rancher-proxy":        {server: "https://rancher.example.org:443/k8s/clusters/c-m-abcd1234", login: "token"},
	"size-limit":           {server: "https://api.example.org:6443", login: "token"},
	"talos":                {server: "https://10.5.0.2:6443", login: "certificate", expires: certExpiry},
	"tls-server-name":      {server: "https://api.example.org:6443", login: "token", serverName: "kubernetes.example.org"},
	"token-expired":        {server: "https://api.example.org:6443", login: "token", expires: longExpired},
	"windows":              {server: "https://api.example.org:6443", login: "token"},
}

// TestCorpus: each kubeconfig of testdata/corpus is accepted with the fields, or refused with the text, that are written here
// and in corpus_refused_test.go.
func TestCorpus(t *testing.T) {
	files := corpus(t)
	for name, raw := range files {
		t.Run(name, func(t *testing.T) {
			yes, isAccepted := accepted[name]
			no, isRefused := refused[name]
			if len(raw) > maxSeed {
				checkAny(t, raw)
			}
			switch {
			case isAccepted == isRefused:
				t.Error("has no expectation, or two")
			case isAccepted:
				checkAcceptance(t, raw, yes)
			default:
				checkRefusal(t, raw, no)
			}
		})
	}
	if want := len(accepted) + len(refused); len(files) != want {
		t.Errorf("%d files, %d expectations", len(files), want)
	}
}

func checkAcceptance(t *testing.T, raw []byte, want acceptance) {
	t.Helper()
	c := must.Get(kubeconfig.Parse(raw, operator)).Or(t)
	r := c.RESTConfig()
	var login []string
	for _, l := range []struct {
		name string
		has  bool
	}{{"certificate", len(r.CertData) > 0 && len(r.KeyData) > 0}, {"token", r.BearerToken != ""}, {"password", r.Username != "" && r.Password != ""}} {
		if l.has {
			login = append(login, l.name)
		}
	}
	expires, _ := c.Expiration()
	got := acceptance{server: c.Server(), login: strings.Join(login, " "), serverName: r.ServerName, expires: expires}
	must.Equal(t, want, got, cmp.AllowUnexported(acceptance{}))
	checkMinimal(t, c, operator)
}

func checkRefusal(t *testing.T, raw []byte, want refusal) {
	t.Helper()
	_, err := kubeconfig.Parse(raw, operator)
	checkNoMarker(t, err)
	e := asError(t, err)
	if e == nil {
		t.Fatal("is accepted")
	}
	must.Equal(t, []string{want.reason, want.field}, []string{e.Reason, e.Field})
	if !strings.HasPrefix(e.Error(), want.field) || want.text == "" || !strings.Contains(e.Message, want.text) {
		t.Errorf("the text is %q, want it to begin with %q and to say %q", e.Error(), want.field, want.text)
	}
	if !strings.Contains(e.Message, "; ") && !strings.Contains(e.Message, "must ") {
		t.Errorf("the text does not say what to do: %q", e.Message)
	}
	if hint := "(the hub's flag --" + want.flag + " lifts this)"; (want.flag != "") != strings.Contains(e.Message, "--allow") || want.flag != "" && !strings.HasSuffix(e.Message, hint) {
		t.Errorf("the text is %q, want it to name the flag %q", e.Message, want.flag)
	}
	for flag, set := range lift {
		rules := operator
		set(&rules)
		c, err := kubeconfig.Parse(raw, rules)
		checkNoMarker(t, err)
		reason := want.reason
		if flag == want.flag {
			reason = want.then
		}
		if got := got(t, err).Reason; got != reason {
			t.Errorf("with --%s the reason is %q, want %q: %v", flag, got, reason, err)
		}
		if err == nil {
			checkMinimal(t, c, rules)
		}
	}
}
