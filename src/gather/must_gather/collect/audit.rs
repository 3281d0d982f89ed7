//! Collects the audit logs of API servers from their nodes: a kubelet serves the log folder as an HTML page of links.

use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tokio::fs::File;

use super::logs::{Found, copy};
use super::{CollectError, Run};

/// The servers with audit logs: the names of their folders below `/var/log` of a node.
const COMPONENTS: [&str; 4] = ["kube-apiserver", "openshift-apiserver", "oauth-apiserver", "oauth-server"];
/// The labels of control plane nodes.
const LABELS: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// The prefix of audit log names.
const AUDIT: &str = "audit";

/// Returns the names of the control plane nodes.
pub(super) async fn nodes(run: &Run<'_>, found: &mut Found) -> Vec<String> {
    let nodes: Api<Node> = Api::all(run.client.clone());
    let mut names: Vec<String> = Vec::new();
    for label in LABELS {
        match nodes.list_metadata(&ListParams::default().labels(label)).await {
            Ok(listed) => names.extend(listed.items.iter().map(|node| node.name_any())),
            Err(error) => {
                run.missed(format!("nodes with {label}"), &error);
                found.missed += 1;
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

pub(super) async fn collect(run: &Run<'_>, nodes: &[String]) -> Result<Found, CollectError> {
    let mut found = Found::default();
    for node in nodes {
        for component in COMPONENTS {
            of_component(run, node, component, &mut found).await?;
        }
    }
    Ok(found)
}

async fn of_component(
    run: &Run<'_>,
    node: &str,
    component: &str,
    found: &mut Found,
) -> Result<(), CollectError> {
    let folder = format!("/api/v1/nodes/{node}/proxy/logs/{component}/");
    let page = match get(&folder) {
        Ok(request) => run.client.request_text(request).await,
        Err(error) => Err(error),
    };
    let page = match page {
        Ok(page) => page,
        // The server does not run on this node.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => {
            run.missed(format!("audit logs of {component} on {node}"), &error);
            found.missed += 1;
            return Ok(());
        }
    };
    for file in links(&page) {
        let what = || format!("{component}/{file} of node {node}");
        let source = match get(&format!("{folder}{file}")) {
            Ok(request) => run.client.request_stream(request).await,
            Err(error) => Err(error),
        };
        match source {
            Ok(source) => {
                let name = format!("{node}-{file}");
                let (out, path) = run.folder.create(&["audit_logs", component, &name])?;
                let whole = copy(run, source, File::from_std(out), path, what).await?;
                found.logs += u64::from(whole);
                found.missed += u64::from(!whole);
            }
            Err(error) => {
                run.missed(what(), &error);
                found.missed += 1;
            }
        }
    }
    Ok(())
}

pub(super) fn get(path: &str) -> Result<Request<Vec<u8>>, kube::Error> {
    Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)
}

/// Returns the audit logs among the links of a page, with names as in URLs.
fn links(page: &str) -> Vec<&str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut links: Vec<_> = links.filter(|link| link.starts_with(AUDIT) && link.chars().all(legal)).collect();
    links.sort_unstable();
    links.dedup();
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_page_are_names_of_files() {
        let page = "<pre>\n<a href=\"audit-2026-01-01T00-00-00.000.log\">a</a>\n<a href=\"audit.log\">audit.log</a>\n\
                    <a href=\"audit/../../../secrets\">x</a><a href=\"termination.log\">t</a><a href=\"";
        assert_eq!(links(page), ["audit-2026-01-01T00-00-00.000.log", "audit.log"]);
        assert!(links("").is_empty());
    }
}
