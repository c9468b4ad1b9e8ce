// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Where Kamaji serves its webhooks. It does not let one choose the port.
const (
	kamajiAddress = "127.0.0.1:9443"
	kamajiURL     = "https://" + kamajiAddress
)

// registerWebhooks does what Kamaji's chart does, with URLs for Services. Its webhook for telemetry, which is off, is left out.
func (k *Kamaji) registerWebhooks(ctx context.Context) error {
	to := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{URL: ptr.To(kamajiURL + path), CABundle: k.keys.Authority()}
	}
	rules := func(group, version, resource string, on ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{
			Operations: on,
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	const create, update, remove, group = admissionv1.Create, admissionv1.Update, admissionv1.Delete, "kamaji.clastix.io"
	validating := func(name, path string, policy admissionv1.FailurePolicyType,
		rules []admissionv1.RuleWithOperations) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name: name, ClientConfig: to(path), Rules: rules, FailurePolicy: &policy,
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}
	}
	if err := k.hub.Client.Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kamaji-mutating-webhook-configuration"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "mtenantcontrolplane.kb.io", ClientConfig: to("/mutate-kamaji-clastix-io-v1alpha1-tenantcontrolplane"),
			Rules: rules(group, "v1alpha1", "tenantcontrolplanes", create, update), FailurePolicy: ptr.To(admissionv1.Fail),
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}); err != nil {
		return err
	}
	return k.hub.Client.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kamaji-validating-webhook-configuration"},
		Webhooks: []admissionv1.ValidatingWebhook{
			validating("vdatastoresecrets.kb.io", "/validate--v1-secret", admissionv1.Ignore, rules("", "v1", "secrets", remove)),
			validating("vdatastore.kb.io", "/validate-kamaji-clastix-io-v1alpha1-datastore", admissionv1.Fail,
				rules(group, "v1alpha1", "datastores", create, update, remove)),
			validating("vtenantcontrolplane.kb.io", "/validate-kamaji-clastix-io-v1alpha1-tenantcontrolplane", admissionv1.Fail,
				rules(group, "v1alpha1", "tenantcontrolplanes", create, update)),
		},
	})
}
