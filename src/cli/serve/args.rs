//! Defines the arguments of `admit serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kube::Client;

use super::super::client::{client, client_in_cluster};
use super::super::process::Fault;
use super::super::value_parsers::{address, label, name};
use super::certificates::{Callers, Files};
use super::self_signed::SelfSigned;
use crate::controllers::policies::Wanted;
use crate::telemetry::{LogFormat, Traces};

/// Arguments of `admit serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  admit serve --policies policies --tls-cert tls.crt --tls-key tls.key --listen 127.0.0.1:8443\n  \
                  admit serve --in-cluster --cluster-policies --self-signed --listen 0.0.0.0:8443"
)]
pub(in crate::cli) struct ServeArgs {
    /// Folder or file with policies, bindings, params and CustomResourceDefinitions; reloaded when it changes [default: policies,
    /// unless policies come from the cluster]
    #[arg(long, value_name = "PATH")]
    policies: Option<PathBuf>,

    /// Address to serve the webhook on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", value_parser = address)]
    pub(super) listen: SocketAddr,

    /// Address to serve /metrics, /livez, /readyz and /policies on, over plain HTTP; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = address)]
    pub(super) observe_listen: SocketAddr,

    /// Time limit for a request in seconds; shorter if the API server waits less
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(super) timeout: u64,

    /// Seconds to keep serving after SIGTERM, reporting not ready, so that callers notice
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub(super) shutdown_delay: u64,

    /// Also answer AdmissionReviews of admission.k8s.io/v1beta1, in that version
    #[arg(long)]
    pub(super) v1beta1: bool,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    pub(super) log_format: LogFormat,

    /// URL of an OpenTelemetry collector, http://HOST:4318, to send a trace of each review to, by OTLP over HTTP [default: no
    /// traces]
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,

    #[command(flatten)]
    pub(super) cluster: ClusterArgs,

    #[command(flatten)]
    tls: TlsArgs,
}

/// The flags about the cluster that calls the webhook.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ClusterArgs {
    /// Watch the namespaces and params of the cluster of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Watch the namespaces and params of the cluster that this Pod runs in
    #[arg(long, conflicts_with = "kubeconfig")]
    in_cluster: bool,

    /// Enforce the cluster's validating and mutating policies, in addition to those of --policies
    #[arg(long)]
    pub(super) cluster_policies: bool,

    /// Apply the cluster's PolicyExceptions and ClusterPolicyExceptions: admit what they name
    ///
    /// Whoever may create them can bypass policies, in their namespace or, with the latter, anywhere.
    #[arg(long)]
    pub(super) cluster_exceptions: bool,
}

/// The flags about certificates.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// PEM file with the serving certificate and its chain; reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// PEM file with the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Generate certificates and renew them; with a cluster, store them in a Secret and their CA in the webhook configurations
    #[arg(long, conflicts_with = "tls_cert")]
    self_signed: bool,

    /// Name of the Service that the certificate is for
    #[arg(long, value_name = "NAME", default_value = "admit", value_parser = label)]
    service_name: String,

    /// Namespace of that Service, and of the Secret
    #[arg(long, value_name = "NAMESPACE", default_value = "admit-system", value_parser = label)]
    namespace: String,

    /// Name of the Secret through which replicas share certificates
    #[arg(long, value_name = "NAME", default_value = "admit-self-signed", value_parser = name)]
    secret_name: String,

    /// Name of the validating and mutating webhook configurations whose caBundle is kept up to date
    #[arg(long, value_name = "NAME", default_value = "admit", value_parser = name)]
    webhook_name: String,

    /// PEM file to write the CA certificates to
    #[arg(long, value_name = "FILE", requires = "self_signed", conflicts_with = "tls_cert")]
    ca_out: Option<PathBuf>,

    /// Oldest TLS version to accept
    #[arg(long, value_enum, default_value_t)]
    tls_min_version: TlsVersion,

    /// PEM file with the CA of client certificates; other clients are refused [default: all clients may call]
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Common name of a client that may call; repeatable [default: all clients with a certificate of that CA]
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_subject: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TlsVersion {
    /// TLS 1.2 with authenticated encryption, and 1.3
    #[value(name = "1.2")]
    Tls12,
    /// Only TLS 1.3
    #[default]
    #[value(name = "1.3")]
    Tls13,
}

/// The source of the certificates.
pub(super) enum Certificates {
    Files(Files),
    SelfSigned(Box<SelfSigned>),
}

impl ServeArgs {
    /// Returns the folder of policies to load, if any.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let default = (!self.cluster.cluster_policies).then(|| PathBuf::from("policies"));
        self.policies.clone().or(default)
    }

    /// Returns where traces are sent.
    pub(super) fn traces(&self) -> Result<Traces, Fault> {
        let to = |endpoint: &String| Traces::to(endpoint);
        let traces = self.otlp_endpoint.as_ref().map(to).transpose();
        traces
            .map(Option::unwrap_or_default)
            .map_err(|error| Fault::usage(format!("--otlp-endpoint: {error}")))
    }

    pub(super) fn certificates(&self, client: Option<Client>) -> Result<Certificates, Fault> {
        let tls = &self.tls;
        let callers = Callers {
            authority: tls.client_ca.clone(),
            subjects: tls.client_subject.clone(),
            tls12: tls.tls_min_version == TlsVersion::Tls12,
        };
        match (&tls.tls_cert, &tls.tls_key) {
            (Some(certificate), Some(key)) => {
                Ok(Certificates::Files(Files { certificate: certificate.clone(), key: key.clone(), callers }))
            }
            _ if tls.self_signed => Ok(Certificates::SelfSigned(Box::new(SelfSigned {
                service: tls.service_name.clone(),
                namespace: tls.namespace.clone(),
                secret: tls.secret_name.clone(),
                webhook: tls.webhook_name.clone(),
                bundle_file: tls.ca_out.clone(),
                client,
                callers,
            }))),
            _ => Err(Fault::usage("--tls-cert and --tls-key, or --self-signed, are needed")),
        }
    }
}

impl ClusterArgs {
    /// Returns which optional kinds are watched in the cluster.
    pub(super) const fn wanted(&self) -> Wanted {
        Wanted { policies: self.cluster_policies, exceptions: self.cluster_exceptions }
    }

    /// Creates a client of the cluster, if one was named.
    pub(super) async fn client(&self) -> Result<Option<Client>, Fault> {
        match &self.kubeconfig {
            Some(path) => client(Some(path.clone())).await.map(Some),
            None if self.in_cluster => client_in_cluster().map(Some),
            None if self.cluster_policies => {
                Err(Fault::usage("--cluster-policies needs --kubeconfig or --in-cluster"))
            }
            None if self.cluster_exceptions => {
                Err(Fault::usage("--cluster-exceptions needs --kubeconfig or --in-cluster"))
            }
            None => Ok(None),
        }
    }
}
