// SPDX-License-Identifier: Apache-2.0

// Command hello answers on port 8080 with the name of the pod that it runs in. If it is asked for ?from=URL, it answers
// what that URL does.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("hello from", name)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		from := r.FormValue("from")
		if from == "" {
			fmt.Fprint(w, name)
			return
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get(from)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
