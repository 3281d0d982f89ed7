//! `admit up`: runs API server, webhook and controllers in one process, with certificates of one authority.
//!
//! ```text
//! kubectl ──TLS──► API server ──TLS, AdmissionReview──► webhook        controllers ──in process──► API server
//! ```

mod audit;
mod deciding;
mod files;
mod in_force;
mod page;
mod plugins;
mod tls;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_apimachinery::go;
use admit_apiserver::{AuditLog, Identity, Server, ServerBuilder, ServiceNetwork, ServiceRange};
use admit_policy::PolicySet;
use clap::{ArgAction, Args};
use futures::FutureExt as _;
use kube::Client;
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::audit::AuditArgs;
use self::deciding::start_admission;
use self::files::Files;
use self::page::{Page, PageArgs};
use self::plugins::PluginArgs;
use super::Exit;
use super::controller_selection::{self, ControllerArgs, Told};
use super::cyndi::CyndiArgs;
use super::datagather_flags::{DataGatherArgs, RoundArgs};
use super::demo::{Actors, DemoArgs};
use super::gather_job_flags::JobArgs;
use super::generate::webhook::Endpoint;
use super::localnode_flags::{self as jobs, Ground, LocalNodeArgs};
use super::must_gather::args::MustGatherArgs;
use super::observability_flags::ObservabilityArgs;
use super::process::{self, Fault, GRACE, Threads};
use super::sources::{self, InUse};
use super::value_parsers::address;
use super::{conversion, following, kubeconfig, register, state, token_key};
use crate::admission::tls::{Authority, write_private};
use crate::controllers::datagather;
use crate::controllers::kit::manager::Manager;
use crate::controllers::kit::observe::Observed;
use crate::controllers::kit::tasks::Supervisor;
use crate::controllers::observability::crd::SPOKE_NAMESPACE;
use crate::gather::store::Readers;
use crate::telemetry::{LogFormat, Metrics, with_causes};

/// The namespace of the controllers' service accounts, by which policies tell them from users and from each other.
const ACCOUNTS: &str = "admit-system";
/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// Arguments of `admit up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Webhooks that name a Service are called at a ready endpoint of its EndpointSlices or, if it is an ExternalName, at that name:
`externalName: localhost` and the port of a program of yours in `clientConfig.service.port` reach it on this machine.

Example:
  admit up
  KUBECONFIG=.admit/kubeconfig kubectl get datagathers")]
pub(super) struct UpArgs {
    /// Address to serve the API on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", value_parser = address)]
    listen: SocketAddr,

    /// Address to serve the webhook on, which the API server calls; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", value_parser = address)]
    admission_listen: SocketAddr,

    /// Folder or file with policies, bindings, params and CRDs of their own; may be given several times [default: policies, if
    /// there is such a folder, or else none]
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// Folder or file with CustomResourceDefinitions to register; may be given several times [default: deploy/crds, or else the
    /// built-in ones]
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// Folder for certificates, kubeconfig, data and archives, accessible to its owner only
    #[arg(long, value_name = "DIR", default_value = ".admit")]
    state_dir: PathBuf,

    /// IPv4 network to assign the addresses of Services from; an existing state folder keeps the network it was created with
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/16")]
    service_cluster_ip_range: ServiceRange,

    /// Whether to admit privileged containers, as clusters of kubeadm and kind do; kube-apiserver's own default is false. `admit
    /// check`, `admit test` and `admit explain` admit them
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = ArgAction::Set)]
    allow_privileged: bool,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    audit: AuditArgs,

    #[command(flatten)]
    plugins: PluginArgs,

    #[command(flatten)]
    controlling: ControllerArgs,

    #[command(flatten)]
    local: LocalNodeArgs,

    #[command(flatten)]
    gathering: DataGatherArgs,

    #[command(flatten)]
    rounds: RoundArgs,

    #[command(flatten)]
    gather_jobs: JobArgs,

    #[command(flatten)]
    must_gathers: MustGatherArgs,

    #[command(flatten)]
    add_ons: ObservabilityArgs,

    #[command(flatten)]
    pipelines: CyndiArgs,

    #[command(flatten)]
    demo: DemoArgs,

    #[command(flatten)]
    page: PageArgs,
}

/// A sample DataGather.
const SAMPLE: &str = "deploy/samples/datagather.yaml";
/// The warning if no policies are loaded: everything would be admitted, which may be an accident of the current folder.
const NO_POLICIES: &str = "no policies are loaded, and whatever the API server takes is let in: name a folder or file of policies with \
                           --policies, or `kubectl apply` some";

impl UpArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| self.up(shutdown))
    }

    async fn up(mut self, shutdown: CancellationToken) -> Result<(), Fault> {
        // All errors in files are found before anything listens.
        let log = self.audit.open()?;
        let server = self.builder(log.as_ref())?;
        let notes = state::folder(&self.state_dir)?;
        let authority = Authority::open(&self.state_dir, OffsetDateTime::now_utc()).map_err(Fault::usage)?;
        let Files { definitions, set, sources, contents } = self.read(&shutdown).await?;
        let mut told = self.told()?;
        let demo = self.demo.prepare(&self.state_dir, &mut self.controlling, &mut told)?;
        let token_key = token_key::open(&self.state_dir)?;
        let pods = jobs::folder(&self.state_dir)?;
        let store = state::store(&self.state_dir)?;
        state::tell(&notes);
        let (api, webhook, page) = self.listeners()?;
        let addresses = Addresses { api: local(&api)?, webhook: local(&webhook)? };

        let server = known_by(server, &authority)
            .store(store)
            .token_key(token_key)
            .issuer(format!("https://{}", addresses.api))
            .service_network(network(self.service_cluster_ip_range, addresses.api))
            .build()
            .await
            .map_err(Fault::internal)?;
        server.set_ready("admission", false);
        server.set_ready("controllers", false);
        let (in_force, policies) = watch::channel(Arc::new(set));
        let metrics = Arc::new(Metrics::default());
        let mut parts = Supervisor::new(shutdown.clone());
        // The controllers stop first: their last writes go through the API server and the webhook.
        let serving = CancellationToken::new();
        let controlling = Arc::new(serving.clone().drop_guard());
        start_api_server(&mut parts, &server, api, &authority, &serving)?;
        let deciding = (policies.clone(), Arc::clone(&metrics), page.as_ref().map(Page::decisions));
        let cluster = start_admission(&mut parts, &server, deciding, webhook, &authority, &serving)?;
        let started = async {
            let endpoint = addresses.webhook(&authority);
            self.define(&server, &definitions, &endpoint.client_config(conversion::PATH)).await?;
            // The webhook is called as soon as it is registered, and must know the params by then.
            let now = Arc::clone(&policies.borrow());
            let set = Arc::clone(&now.policies);
            following::want_params(&set, &cluster).await;
            in_force::tell(&server, &now, &endpoint).await?;
            let in_use = InUse { sources, contents, in_force };
            let reloading = sources::keep(in_use, Some(Arc::clone(&cluster)), metrics, serving.clone());
            parts.part("policies", reloading);
            let keeping = following::keep_params(policies.clone(), cluster, serving.clone());
            parts.part("params", keeping.map(Ok));
            parts.part("webhook", in_force::keep(server.clone(), policies, endpoint, serving.clone()));
            server.set_ready("admission", true);
            let ground = Ground { server: &server, authority: &authority, api: addresses.api, folder: pods };
            self.local.start(&mut parts, ground, &shutdown, controlling.clone())?;
            let manager = self.controllers(&server, &told)?;
            if let Some(demo) = demo {
                demo.start(&mut parts, actors(&server), &shutdown, controlling.clone());
            }
            page::start(page, &mut parts, (&server, &manager), &serving);
            start_controllers(&mut parts, &server, manager, &shutdown, controlling);
            tell(definitions.len(), &set, addresses);
            self.announce(addresses.api, &authority)
        };
        let started = started.await;
        if started.is_err() {
            shutdown.cancel();
        }
        let ended = parts.join().await.map_err(Fault::internal);
        log.iter().for_each(AuditLog::settle);
        started.and(ended)
    }

    fn builder(&self, log: Option<&AuditLog>) -> Result<ServerBuilder, Fault> {
        let server = Server::builder().admission_plugins(self.plugins.chosen()?);
        Ok(audit::writes(server.allow_privileged(self.allow_privileged), log))
    }

    /// Opens the listeners of the API server, the webhook and, if requested, the page.
    fn listeners(&self) -> Result<(TcpListener, TcpListener, Option<Page>), Fault> {
        let api = process::listen(self.listen, "--listen")?;
        let webhook = process::listen(self.admission_listen, "--admission-listen")?;
        Ok((api, webhook, self.page.listen()?))
    }

    /// Returns the settings of the controllers.
    fn told(&self) -> Result<Told, Fault> {
        let mut gathering = self.gathering.settings(&self.state_dir.join("archives"));
        self.rounds.apply(&mut gathering);
        gathering.runner = self.gather_jobs.runner(&self.gathering, self.must_gathers.image());
        if gathering.archive_dir.starts_with(&self.state_dir) {
            gathering.archive_readers = Readers::Owner;
        }
        datagather::check(&gathering).map_err(Fault::usage)?;
        let must_gathers = self.must_gathers.settings(self.gathering.proxy_ca.as_deref())?;
        let (add_ons, pipelines) = (self.add_ons.settings()?, self.pipelines.settings()?);
        Ok(Told { gathering, must_gathers, add_ons, pipelines })
    }

    /// Reads the policies and CRDs; ends early if the process is asked to stop, even while a file blocks.
    async fn read(&self, shutdown: &CancellationToken) -> Result<Files, Fault> {
        let reading = files::read(self.policies.clone(), self.crds.clone());
        match shutdown.run_until_cancelled(reading).await {
            Some(read) => read,
            None => Err(Fault::internal("stopped before it served")),
        }
    }

    /// Creates the CRDs and the controllers' namespace in the API server. `converter` is the conversion webhook.
    async fn define(&self, server: &Server, definitions: &[Value], converter: &Value) -> Result<(), Fault> {
        let client = client(server, Identity::admin());
        for definition in definitions {
            let definition = conversion::called_at(definition, converter);
            register::put(&client, "customresourcedefinitions", &definition).await.map_err(|error| {
                let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                let error = with_causes(&error);
                Fault::not_compiled(format!("the API server refuses definition `{name}`: {error}"))
            })?;
        }
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.gathering.gathering_namespace},
        });
        register::put(&client, "namespaces", &namespace)
            .await
            .map_err(|error| refused("our namespace", &error))?;
        for document in self.gather_jobs.account(&self.gathering.gathering_namespace)? {
            let kind = document["kind"].as_str().unwrap_or_default();
            let plural = format!("{}s", kind.to_lowercase());
            let put = register::put(&client, &plural, &document).await;
            put.map_err(|error| refused(&format!("a {kind} of gathering Jobs"), &error))?;
        }
        Ok(())
    }

    /// Creates the controllers, each with its service account, which may do everything.
    fn controllers(&self, server: &Server, told: &Told) -> Result<Manager, Fault> {
        let acting = |account: &str| {
            Ok(client(
                server,
                Identity::new(controller_selection::user(ACCOUNTS, account), [MASTERS.to_owned()]),
            ))
        };
        self.controlling.manager(client(server, Identity::admin()), None, told, acting)
    }

    /// Writes the kubeconfig, and prints on standard output what to try.
    fn announce(&self, api: SocketAddr, authority: &Authority) -> Result<(), Fault> {
        let now = OffsetDateTime::now_utc();
        let admin = authority.issue_client("admin", MASTERS, now).map_err(Fault::internal)?;
        let path = self.state_dir.join("kubeconfig");
        let text = kubeconfig::render(&format!("https://{api}"), authority.certificate_pem(), &admin);
        write_private(&path, &text).map_err(Fault::usage)?;
        // If standard output is closed, nobody wants the hints.
        let _ = io::stdout().write_all(hints(&path, Path::new(SAMPLE)).as_bytes());
        tracing::info!(address = %api, kubeconfig = %path.display(), "ready");
        Ok(())
    }
}

/// Returns the hints; they include the sample if its file exists, as it does beside the sources.
fn hints(kubeconfig: &Path, sample: &Path) -> String {
    let export = format!("export KUBECONFIG={}", kubeconfig.display());
    if !sample.exists() {
        return format!("{export}\nkubectl get namespaces\nkubectl get validatingadmissionpolicies\n");
    }
    format!("{export}\nkubectl apply -f {}\nkubectl get datagathers -w\n", sample.display())
}

/// Logs what is in force, and who enforces it.
fn tell(definitions: usize, policies: &PolicySet, Addresses { webhook, .. }: Addresses) {
    let count = policies.policies().count() + policies.mutating_policies().count();
    tracing::info!(definitions, policies = count, webhook = %webhook, "in force");
    if count == 0 {
        tracing::warn!("{NO_POLICIES}");
    }
}

fn refused(what: &str, error: &kube::Error) -> Fault {
    Fault::internal(format!("the API server refuses {what}: {}", with_causes(error)))
}

/// The addresses on which the two servers really listen.
#[derive(Clone, Copy)]
struct Addresses {
    api: SocketAddr,
    webhook: SocketAddr,
}

impl Addresses {
    /// Returns the webhook's URL, and the authority to trust.
    fn webhook(&self, authority: &Authority) -> Endpoint {
        Endpoint::Url {
            base: format!("https://{}", self.webhook),
            ca_bundle: go::base64::encode(authority.certificate_pem()),
        }
    }
}

/// Sets the authority that signs the certificates of the server and of its clients.
fn known_by(server: ServerBuilder, authority: &Authority) -> ServerBuilder {
    server.root_ca(authority.certificate_pem()).client_authorities(authority.certificate_pem())
}

/// Configures the network: Pods reach the API server at its listener, if that is one address.
fn network(range: ServiceRange, api: SocketAddr) -> ServiceNetwork {
    let address = Some(api.ip()).filter(|own| !own.is_unspecified());
    ServiceNetwork { range, address, port: api.port() }
}

fn local(listener: &TcpListener) -> Result<SocketAddr, Fault> {
    listener.local_addr().map_err(Fault::internal)
}

/// Creates a client that calls the server in process, as `identity`.
fn client(server: &Server, identity: Identity) -> Client {
    Client::new(server.router().layer(axum::Extension(identity)), "default")
}

/// Creates the clients of the demo: an administrator, and the collectors of an add-on.
fn actors(server: &Server) -> Actors {
    let collectors = controller_selection::user(SPOKE_NAMESPACE, "collectors");
    Actors {
        admin: client(server, Identity::admin()),
        collectors: client(server, Identity::new(collectors, [MASTERS.to_owned()])),
    }
}

/// Starts the controllers; `controlling` is dropped when they have ended for any reason.
fn start_controllers(
    parts: &mut Supervisor<Fault>,
    server: &Server,
    manager: Manager,
    shutdown: &CancellationToken,
    controlling: Arc<DropGuard>,
) {
    let observed = Observed::of(&manager);
    server.set_metrics(move || observed.text());
    let run = manager.run(shutdown.clone());
    parts.part("controllers", async {
        let _controlling = controlling;
        run.await.map_err(Fault::usage)
    });
    server.set_ready("controllers", true);
}

fn start_api_server(
    parts: &mut Supervisor<Fault>,
    server: &Server,
    listener: TcpListener,
    authority: &Authority,
    stop: &CancellationToken,
) -> Result<(), Fault> {
    let mut names: Vec<String> =
        ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1", "::1"]
            .map(ToOwned::to_owned)
            .to_vec();
    names.push(local(&listener)?.ip().to_string());
    let leaf = authority.issue_server(&names, OffsetDateTime::now_utc()).map_err(Fault::internal)?;
    let tls = tls::of_api_server(&leaf, authority)?;
    let (serving, stopped) = (server.clone(), stop.clone());
    parts.part("api server", async move {
        serving.serve(listener, tls, stopped.cancelled_owned()).await.map_err(Fault::internal)
    });
    let (keeping, stopped) = (server.clone(), stop.clone());
    parts.part("housekeeping", async move {
        stopped.run_until_cancelled(keeping.housekeeping()).await;
        Ok(())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_tried_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (sample, kubeconfig) = (folder.path().join("sample.yaml"), Path::new(".admit/kubeconfig"));
        let export = "export KUBECONFIG=.admit/kubeconfig\n";
        let look = "kubectl get namespaces\nkubectl get validatingadmissionpolicies\n";
        assert_eq!(hints(kubeconfig, &sample), format!("{export}{look}"));
        std::fs::write(&sample, "").unwrap();
        let apply = format!("kubectl apply -f {}\n", sample.display());
        assert_eq!(hints(kubeconfig, &sample), format!("{export}{apply}kubectl get datagathers -w\n"));
    }
}
