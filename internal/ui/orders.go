// SPDX-License-Identifier: Apache-2.0

package ui

import "net/http"

// orders adds what changes something.
func (s *Server) orders(*http.ServeMux) {}
