//! Renders the kubeconfig that `admit up` writes: one cluster and one administrator, with all certificates inline.

use crate::admission::tls::Identity;
use admit_apimachinery::go;

/// Renders a kubeconfig for `server` (`https://127.0.0.1:6443`) with the authority `ca_pem` and the client certificate `client`.
pub(super) fn render(server: &str, ca_pem: &str, client: &Identity) -> String {
    let ca = go::base64::encode(ca_pem);
    let certificate = go::base64::encode(&client.certificate_pem);
    let key = go::base64::encode(&client.key_pem);
    format!(
        "apiVersion: v1
kind: Config
current-context: admit
clusters:
- name: admit
  cluster:
    server: {server}
    certificate-authority-data: {ca}
contexts:
- name: admit
  context:
    cluster: admit
    namespace: default
    user: admin
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kube_client_reads_it() {
        let client = Identity { certificate_pem: "cert".to_owned(), key_pem: "key".to_owned() };
        let text = render("https://127.0.0.1:6443", "ca", &client);
        let config: kube::config::Kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("admit"));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("Y2E="));
    }
}
