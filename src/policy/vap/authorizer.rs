//! Implements the `authorizer` variable of expressions with the host's answers; equal checks are made once, whichever expressions
//! repeat them.

use std::cell::RefCell;

use admit_cel::authorization::{Authorizer, Check, Decision, ResourceTarget, Subject, Target};

use crate::request::host::{AccessAttributes, Host};
use crate::request::{Request, UserInfo};

/// Asks the host on behalf of the expressions of one request.
#[derive(Debug)]
pub(super) struct HostAuthorizer<'a> {
    host: &'a dyn Host,
    request: &'a Request<'a>,
    answers: &'a Answers,
}

/// What the host answered about one request so far.
#[derive(Debug, Default)]
pub(super) struct Answers(RefCell<Vec<(ServiceAccount, AccessAttributes, Decision)>>);

/// Namespace and name; none for the user of the request.
type ServiceAccount = Option<(String, String)>;

impl<'a> HostAuthorizer<'a> {
    pub(super) fn new(host: &'a dyn Host, request: &'a Request<'a>, answers: &'a Answers) -> Self {
        Self { host, request, answers }
    }

    /// What `authorizer.requestResource` checks: the resource as the client named it.
    pub(super) fn request_resource(&self) -> ResourceTarget<'a> {
        ResourceTarget {
            group: &self.request.request_resource.group,
            resource: &self.request.request_resource.resource,
            subresource: &self.request.subresource,
            namespace: &self.request.namespace,
            name: &self.request.name,
            ..ResourceTarget::default()
        }
    }
}

impl Authorizer for HostAuthorizer<'_> {
    fn authorize(&self, check: &Check<'_>) -> Decision {
        let attributes = attributes(check);
        let subject = match check.subject {
            Subject::Requester => None,
            Subject::ServiceAccount { namespace, name } => Some((namespace.to_owned(), name.to_owned())),
        };
        if let Some(known) = self.answers.find(&subject, &attributes) {
            return known;
        }
        let answer = match &subject {
            None => self.host.authorize(&self.request.user, &attributes),
            Some((namespace, name)) => self.host.authorize(&service_account(namespace, name), &attributes),
        };
        let decision = match answer {
            Ok(access) => Decision { allowed: access.allowed, reason: access.reason.into(), error: None },
            Err(error) => Decision { error: Some(error.to_string().into()), ..Decision::default() },
        };
        self.answers.0.borrow_mut().push((subject, attributes, decision.clone()));
        decision
    }
}

impl Answers {
    fn find(&self, subject: &ServiceAccount, attributes: &AccessAttributes) -> Option<Decision> {
        let answers = self.0.borrow();
        let known = answers.iter().find(|(asked_of, asked, _)| asked_of == subject && asked == attributes);
        known.map(|(_, _, decision)| decision.clone())
    }
}

fn attributes(check: &Check<'_>) -> AccessAttributes {
    let verb = check.verb.to_owned();
    match check.target {
        Target::Path(path) => AccessAttributes::Path { verb, path: path.to_owned() },
        Target::Resource(target) => AccessAttributes::Resource {
            verb,
            group: target.group.to_owned(),
            // Checks of expressions speak of resources in any version.
            version: "*".to_owned(),
            resource: target.resource.to_owned(),
            subresource: target.subresource.to_owned(),
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
            field_selector: target.field_selector.to_owned(),
            label_selector: target.label_selector.to_owned(),
        },
    }
}

/// A service account as it authenticates.
fn service_account(namespace: &str, name: &str) -> UserInfo {
    UserInfo {
        username: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        ..UserInfo::default()
    }
}
