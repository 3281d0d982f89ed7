# Workloads of images that nothing on this machine stands for, and commands that need a kubelet, which say so.
printf '%s\n' 'apiVersion: v1' 'kind: Service' 'metadata: {name: web}' 'spec: {selector: {app: web}, ports: [{port: 80}]}' > service.yaml
kubectl apply -f service.yaml
#> service/web created
kubectl apply -f service.yaml
#> service/web unchanged
kubectl apply --server-side --force-conflicts -f service.yaml
#> service/web serverside-applied
kubectl describe service web
#> TargetPort: 80/TCP
kubectl create deployment web --image=registry.example/web:1 --replicas=2
#> deployment.apps/web created
kubectl scale deployment web --replicas=3
#> deployment.apps/web scaled
kubectl get deployment web
#> web 0/3 0 0 …
kubectl set image deployment/web web=registry.example/web:2
#> deployment.apps/web image updated
kubectl rollout status deployment/web --timeout=1s
#> error: timed out waiting for the condition
kubectl expose deployment web --name=web2 --port=80
#> service/web2 exposed
kubectl run one --image=registry.example/web:1
#> pod/one created
kubectl wait --for='jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff' pod/one
#> pod/one condition met
kubectl get pods
#> one 0/1 ImagePullBackOff 0 …
kubectl logs one
#> Error from server (BadRequest): container "one" in pod "one" is waiting to start: trying and failing to pull image
kubectl exec one -- ls
#> Error from server (NotImplemented): this server cannot reach the kubelet of node "admit-local"
kubectl port-forward one 8080:80
#> error: unable to forward port because pod is not running. Current status=Pending
kubectl top pods
#> error: Metrics API not available
kubectl patch pod one -p '{"spec":{"hostNetwork":true}}'
#> The Pod "one" is invalid: spec: Forbidden: pod updates may not change fields other than …
#> + "HostNetwork": true,
kubectl create job once --image=registry.example/web:1
#> job.batch/once created
kubectl patch job once --type=merge -p '{"spec":{"completions":5}}'
#> The Job "once" is invalid: spec.completions: Invalid value: 5: field is immutable
kubectl explain role.rules.verbs
#> What may be done: get, list, create and so on; `*` is everything.
kubectl replace --force -f service.yaml
#> service/web replaced
kubectl diff -f service.yaml
kubectl delete all --all
#> pod "one" deleted
