// SPDX-License-Identifier: Apache-2.0

// Package account decides what the hub's own ServiceAccount on a workload cluster consists of, which of it is missing, and
// what the Secret on the hub holds that registers the cluster by it. It is pure.
package account

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// AdminRole is the ClusterRole that an account has if nobody says otherwise. With it, the account may do everything.
const AdminRole = "cluster-admin"

// ServiceAccount is the name of the hub's ServiceAccount, in a namespace of its own.
const ServiceAccount = "hub"

// Account is the hub's account on the cluster of one registration.
type Account struct {
	// Name is that of its namespace, and of what binds its rights.
	Name string
	// Registration is the one on the hub that uses it.
	Registration types.NamespacedName
	// HubUID is the UID of kube-system of the management cluster; "" if it is not known. It tells hubs with one ID apart.
	HubUID types.UID
	// Role is the ClusterRole that it has.
	Role string
}

// Of returns the account of a registration.
func Of(hubID string, hubUID types.UID, registration types.NamespacedName, role string) Account {
	return Account{Name: identity.Account(hubID, registration), Registration: registration, HubUID: hubUID, Role: role}
}

// Key returns the namespace and name of the ServiceAccount.
func (a Account) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: a.Name, Name: ServiceAccount}
}

// Objects returns what the account consists of, in the order in which it is made. The first one, its namespace, is the
// owner of the others: when that is deleted, the cluster removes them all. So the account can remove itself by one request.
// The last one gives it its rights. uid is that of the owner; "" for objects that nobody owns, as for Git.
func (a Account) Objects(uid types.UID) []*unstructured.Unstructured {
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Name, Name: ServiceAccount}}
	clusterRole := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	no := false
	all := []runtime.Object{
		&corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: a.meta("", a.Name, "")},
		&corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: a.meta(a.Name, ServiceAccount, uid),
			AutomountServiceAccountToken: &no},
		&rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: a.meta(a.Name, tokenRole, uid), Rules: []rbacv1.PolicyRule{
			rule("", "serviceaccounts/token", ServiceAccount, "create"), rule("", "serviceaccounts", ServiceAccount, "get"),
		}},
		&rbacv1.RoleBinding{TypeMeta: rbac("RoleBinding"), ObjectMeta: a.meta(a.Name, tokenRole, uid),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: tokenRole}, Subjects: subject},
	}
	if a.Role != AdminRole {
		self := a.Name + "-self"
		all = append(all,
			&rbacv1.ClusterRole{TypeMeta: rbac("ClusterRole"), ObjectMeta: a.meta("", self, uid), Rules: []rbacv1.PolicyRule{
				rule("", "namespaces", "kube-system", "get"), // which cluster it is
				rule("", "namespaces", a.Name, "get", "delete"),
			}},
			&rbacv1.ClusterRoleBinding{TypeMeta: rbac("ClusterRoleBinding"), ObjectMeta: a.meta("", self, uid),
				RoleRef: clusterRole(self), Subjects: subject})
	}
	all = append(all, &rbacv1.ClusterRoleBinding{TypeMeta: rbac("ClusterRoleBinding"), ObjectMeta: a.meta("", a.Name, uid),
		RoleRef: clusterRole(a.Role), Subjects: subject})
	return convert(all)
}

// tokenRole lets the ServiceAccount ask for its own tokens.
const tokenRole = "hub-token"

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs}
}

func convert(all []runtime.Object) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(all))
	for i, o := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			panic(err) // Kubernetes' own types convert
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec")
		out[i] = &unstructured.Unstructured{Object: content}
	}
	return out
}

func rbac(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func (a Account) meta(namespace, name string, owner types.UID) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "chandler"},
		Annotations: map[string]string{hubv1.RegistrationAnnotation: a.Registration.String()}}
	if a.HubUID != "" {
		m.Annotations[hubv1.HubUIDAnnotation] = string(a.HubUID)
	}
	if owner != "" {
		blocks := true // the name of the namespace is free only when nothing binds rights to an account in it any more
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: a.Name, UID: owner, BlockOwnerDeletion: &blocks}}
	}
	return m
}

// Called names an object for people.
func Called(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// Check returns an error if what is there cannot be made an account of. there has one object, or nil, for each of Objects. A
// namespace without the binding that gives its account rights may be anybody's: he may hold a token of a ServiceAccount that
// he has made in it, labels and all, and would have the rights too.
func (a Account) Check(there []*unstructured.Unstructured) error {
	namespace, binding := there[0], there[len(there)-1]
	if namespace != nil && binding == nil {
		return fmt.Errorf("Namespace %s is on the cluster, and ClusterRoleBinding %s is not, so others may have tokens of "+
			"accounts in it: a former run was cut short, or a user has made it. Delete it, and run the command again: kubectl delete "+
			"namespace %s",
			a.Name, a.Name, a.Name)
	}
	if binding == nil || len(binding.GetOwnerReferences()) == 0 { // that of a binding for Git is whoever applies it
		return nil
	}
	if namespace == nil || namespace.GetUID() != binding.GetOwnerReferences()[0].UID {
		return fmt.Errorf("ClusterRoleBinding %s is left of an account whose Namespace has gone: the cluster removes it in a moment; run the "+
			"command again then, or after kubectl delete clusterrolebinding %s", a.Name, a.Name)
	}
	return nil
}

// State is how an object of an account is on its cluster.
type State string

// States of an object.
const (
	Missing State = "create"
	Differs State = "update"
	AsIs    State = "unchanged"
)

// Compare returns how an object is, given the one that is there; nil if there is none. It returns an error if that is somebody
// else's, or can only be replaced.
func (a Account) Compare(want, there *unstructured.Unstructured) (State, error) {
	if there == nil {
		return Missing, nil
	}
	if err := a.Owns(there); err != nil {
		return "", err
	}
	if there.GetDeletionTimestamp() != nil {
		return "", fmt.Errorf("%s is being deleted: wait until it is gone, and run the command again", Called(there))
	}
	if ref, ok := want.Object["roleRef"]; ok && !equality.Semantic.DeepEqual(ref, there.Object["roleRef"]) {
		role, _, _ := unstructured.NestedString(there.Object, "roleRef", "name")
		return "", fmt.Errorf("%s binds ClusterRole %q, and a binding cannot be changed: write --role %s, or unregister the cluster first",
			Called(there), role, role)
	}
	for _, field := range []string{"subjects", "rules"} {
		if !equality.Semantic.DeepEqual(want.Object[field], there.Object[field]) {
			return Differs, nil
		}
	}
	return AsIs, nil
}

// Owns returns an error that says whose an object is if it is not of this account.
func (a Account) Owns(there *unstructured.Unstructured) error {
	of, hub := there.GetAnnotations()[hubv1.RegistrationAnnotation], there.GetAnnotations()[hubv1.HubUIDAnnotation]
	switch {
	case there.GetLabels()["app.kubernetes.io/managed-by"] != "chandler" || of != a.Registration.String():
		return fmt.Errorf("%s is on the cluster, and was not made for ClusterRegistration %s: delete it if it is not needed, or choose "+
			"another name",
			Called(there), a.Registration)
	case hub != "" && a.HubUID != "" && hub != string(a.HubUID):
		return fmt.Errorf("%s is that of another hub, on the management cluster whose kube-system has UID %s: choose another name or "+
			"namespace, "+
			"or give the hubs different values of --hub-id", Called(there), hub)
	}
	return nil
}

// Secret returns the Secret that registers the cluster, without its credential.
func (a Account) Secret(labels map[string]string, lifetime string, clusterUID types.UID) *corev1.Secret {
	s := &corev1.Secret{TypeMeta: core("Secret"), Type: corev1.SecretTypeOpaque, ObjectMeta: metav1.ObjectMeta{
		Namespace: a.Registration.Namespace, Name: a.Registration.Name,
		Labels:      map[string]string{hubv1.RegisterLabel: "true"},
		Annotations: map[string]string{hubv1.AccountAnnotation: a.Key().String(), hubv1.RenewTokenAnnotation: lifetime},
	}}
	maps.Copy(s.Labels, labels)
	if clusterUID != "" {
		s.Annotations[hubv1.ClusterUIDAnnotation] = string(clusterUID)
	}
	return s
}

// SecretKey is the key of the kubeconfig in the Secret.
const SecretKey = "value"

// Fits returns an error if a Secret that is there is not one that registers this cluster by this account.
func (a Account) Fits(there *corev1.Secret, clusterUID types.UID) error {
	name := fmt.Sprintf("Secret %s/%s", there.Namespace, there.Name)
	uid, of := there.Annotations[hubv1.ClusterUIDAnnotation], there.Annotations[hubv1.AccountAnnotation]
	switch {
	case of == "":
		return fmt.Errorf("%s is on the hub, and chandler register has not made it: choose another name", name)
	case of != a.Key().String():
		return fmt.Errorf("%s says in annotation %s that it is for ServiceAccount %s on the cluster, and this hub would use %s: "+
			"unregister that cluster first, or choose another name", name, hubv1.AccountAnnotation, of, a.Key())
	case uid != "" && clusterUID != "" && uid != string(clusterUID):
		return fmt.Errorf("%s registers another cluster: its kube-system has UID %s, and this one's has %s: unregister that one first, or "+
			"choose another name", name, uid, clusterUID)
	case there.DeletionTimestamp != nil:
		return fmt.Errorf("%s is being deleted: wait until it is gone, and run the command again", name)
	case there.Labels[hubv1.RegisterLabel] == "false":
		return fmt.Errorf("%s is being unregistered: chandler unregister goes on with that; run this command again afterwards", name)
	}
	return nil
}
