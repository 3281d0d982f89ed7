# Who may do what: service accounts, their tokens, roles and impersonation.
kubectl create serviceaccount bot
#> serviceaccount/bot created
kubectl create token bot --duration=5m
#> error: failed to create token: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 minutes
kubectl auth can-i get pods --as=system:serviceaccount:default:bot || true
#> no
kubectl create role reader --verb=get,list --resource=pods
#> role.rbac.authorization.k8s.io/reader created
kubectl create rolebinding reader --role=reader --serviceaccount=default:bot
#> rolebinding.rbac.authorization.k8s.io/reader created
kubectl auth can-i get pods --as=system:serviceaccount:default:bot
#> yes
kubectl auth can-i --list --as=system:serviceaccount:default:bot
#> pods [] [] [get list]
kubectl auth whoami
#> Username admin
kubectl --kubeconfig /dev/null --server "$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')" --insecure-skip-tls-verify --token "$(kubectl create token bot)" auth whoami
#> Username system:serviceaccount:default:bot
kubectl get configmaps --as=jane
#> Error from server (Forbidden): configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"
kubectl create rolebinding more --clusterrole=cluster-admin --user=jane --as=system:serviceaccount:default:bot
#> error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:default:bot" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "default"
kubectl patch rolebinding reader --type=merge -p '{"roleRef":{"name":"other"}}'
#> The RoleBinding "reader" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"other"}: cannot change roleRef
kubectl describe rolebinding reader
#> ServiceAccount bot default
kubectl delete rolebinding,role reader
#> role.rbac.authorization.k8s.io "reader" deleted
