// SPDX-License-Identifier: Apache-2.0

package faultyapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errConflict = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// answer writes the response that the API server would give with this status code.
func answer(w http.ResponseWriter, r Request, code int) {
	s := status(r, code)
	s.Kind, s.APIVersion = "Status", "v1"
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(s)
}

func status(r Request, code int) metav1.Status {
	resource, _, _ := strings.Cut(r.Resource, "/")
	switch code {
	case http.StatusConflict:
		return apierrors.NewConflict(schema.GroupResource{Resource: resource}, r.Name, errConflict).Status()
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests("the server has received too many requests and has asked us to try again later", 1).Status()
	case http.StatusServiceUnavailable:
		return apierrors.NewServiceUnavailable("the server is currently unable to handle the request").Status()
	}
	s := apierrors.NewInternalError(errors.New("etcdserver: request timed out")).Status()
	s.Code = int32(code) //nolint:gosec // a status is small
	return s
}
