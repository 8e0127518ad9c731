package manifests

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// In another namespace, set with kustomize, each overlay with an account still binds that account.
func TestAnotherNamespaceBindsItsOwnAccount(t *testing.T) {
	for _, overlay := range []string{"dev", "dra", "dra-dev", "node-status"} {
		objects := kustomized(t, "overlays/"+overlay, nil, "namespace: other\n")
		account, set := one[*corev1.ServiceAccount](t, objects), one[*appsv1.DaemonSet](t, objects)
		subjects := one[*rbacv1.ClusterRoleBinding](t, objects).Subjects
		if len(subjects) != 1 || subjects[0].Name != account.Name || subjects[0].Namespace != "other" || account.Namespace != "other" {
			t.Errorf("%s: %v are bound, the account is %s in %s", overlay, subjects, account.Name, account.Namespace)
		}
		if set.Namespace != "other" || set.Spec.Template.Spec.ServiceAccountName != account.Name {
			t.Errorf("%s: the DaemonSet is in %s and runs as %s", overlay, set.Namespace, set.Spec.Template.Spec.ServiceAccountName)
		}
	}
}
