// SPDX-License-Identifier: Apache-2.0

package preview

// HasClusters returns whether there is any cluster in the fleet.
func (f *Fleet) HasClusters() bool { return len(f.members) > 0 }

// IsCluster returns whether an object is a cluster, or says something about one.
func IsCluster(o *Object) bool { return o.Registration != nil || o.Origin != nil }

// Complete returns objects, and those of others that they do not have by kind, namespace and name.
func Complete(objects, others []Object, which func(*Object) bool) []Object {
	there := map[key]bool{}
	for i := range objects {
		there[objects[i].key()] = true
	}
	out := objects[:len(objects):len(objects)]
	for i := range others {
		if o := &others[i]; which(o) && !there[o.key()] {
			out = append(out, *o)
		}
	}
	return out
}
