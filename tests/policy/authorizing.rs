//! What expressions ask the authorizer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit_policy::{
    Access, AccessAttributes, Documents, GroupVersionKind, GroupVersionResource, Host, HostError, Scope,
    UserInfo,
};
use serde_json::{Value, json};

use crate::support::{request, set};

/// Lets everybody do everything, and counts who asks.
#[derive(Debug, Default)]
struct Counting {
    documents: Documents,
    asked: AtomicUsize,
}

impl Host for Counting {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.documents.namespace(name)
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.documents.param_scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.documents.params(kind, namespace)
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        self.documents.equivalents(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.documents.convert(object, kind)
    }

    fn authorize(&self, _user: &UserInfo, _attributes: &AccessAttributes) -> Result<Access, HostError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(Access { allowed: true, reason: String::new() })
    }
}

#[test]
fn a_question_is_asked_once_in_a_request() {
    let policy = |name: &str, validations: &str| {
        format!(
            "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}}]
  matchConditions: [{{name: may, expression: \"authorizer.group('').resource('pods').check('get').allowed()\"}}]
  validations: {validations}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
---"
        )
    };
    let same = "[{expression: \"authorizer.group('').resource('pods').check('get').allowed()\"}]";
    let other = "[{expression: \"authorizer.group('').resource('pods').check('list').allowed()\"},
      {expression: \"authorizer.serviceAccount('team', 'default').group('').resource('pods').check('get').allowed()\"}]";
    let set = set(&[policy("a", same), policy("b", same), policy("c", other)].concat());
    let host = Counting::default();
    assert!(set.decide(&request("x", &json!({})), &host).allowed());
    assert_eq!(host.asked.load(Ordering::Relaxed), 3, "get, list, and get by somebody else");
    assert!(set.decide(&request("x", &json!({})), &host).allowed());
    assert_eq!(host.asked.load(Ordering::Relaxed), 6, "the next request asks again");
}
