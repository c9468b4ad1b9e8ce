// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "chandler.dev", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that add this package's types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterRegistration{}, &ClusterRegistrationList{},
		&AddonSet{}, &AddonSetList{},
		&Team{}, &TeamList{},
		&AddonDelivery{}, &AddonDeliveryList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
