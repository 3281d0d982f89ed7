//! Generates the files of a deployment: a kustomize base, an equivalent Helm chart, and the lists of files that go
//! with them.
//!
//! ```text
//! templates/*.yaml ──┐                     ┌──► DIR/*.yaml, DIR/crds, DIR/monitoring     kubectl apply -k DIR
//! policies ──────────┼──► Vec<File> ──────►│
//! settings ──────────┘                     └──► DIR/chart                                helm install admit DIR/chart
//! ```
//!
//! Neither copies the policies: kustomize reads them where they are, and the chart through a link.

use std::path::{Path, PathBuf};

use admit_apimachinery::yaml;
use admit_policy::PolicySet;
use serde_json::{Value, json};

use super::settings::{NAMESPACE, Settings};
use super::template::{self, TemplateError};
use super::webhook::{self, Callee, Endpoint};
use super::{crds, monitoring, rbac};
use crate::cli::process::Fault;

/// The header of every file, so that nobody edits it.
const HEAD: &str =
    "# Made by `admit generate manifests`; edits are lost. deploy/README.md says what can be set.\n";

const KUSTOMIZE: &str = "kustomize.config.k8s.io/v1beta1";

const CALLERS: &str = "\
#if callers=anyone
# Whoever reaches the Service may ask as the API server does: `callers=client-certificate` and `apiServers` keep others out.
#end
#if callers=client-certificate
# The API server shows a certificate where its AdmissionConfiguration names a kubeconfig with a user `admit.$(namespace).svc`;
# without one it is refused, and so is what the webhooks guard.
#end
";

const WEBHOOK_METADATA: &str = "\
metadata:
  name: admit
#if certificates=cert-manager
  annotations:
    cert-manager.io/inject-ca-from: $(namespace)/admit
#end
";

/// A file: its name, its template, and the setting on which it depends.
struct Part {
    name: &'static str,
    template: &'static str,
    only_if: Option<(&'static str, &'static str)>,
    /// Whether it is part of the chart; Helm creates the namespace itself.
    in_chart: bool,
}

const PARTS: &[Part] = &[
    Part { in_chart: false, ..always("namespace.yaml", include_str!("templates/namespace.yaml")) },
    always("admission.yaml", include_str!("templates/admission.yaml")),
    always("controllers.yaml", include_str!("templates/controllers.yaml")),
    always("service.yaml", include_str!("templates/service.yaml")),
    always("networkpolicy.yaml", include_str!("templates/networkpolicy.yaml")),
    Part {
        only_if: Some(("certificates", "cert-manager")),
        ..always("certificate.yaml", include_str!("templates/certificate.yaml"))
    },
];

const fn always(name: &'static str, template: &'static str) -> Part {
    Part { name, template, only_if: None, in_chart: true }
}

/// A generated file or link, with its path below the output folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum File {
    Text {
        path: PathBuf,
        text: String,
    },
    /// A symbolic link to `target`, which is relative to the link.
    Link {
        path: PathBuf,
        target: PathBuf,
    },
}

/// A folder of policies that the manifests refer to.
#[derive(Debug)]
pub(super) struct PolicyFolder {
    /// The path relative to the output folder.
    pub(super) path: PathBuf,
    /// The manifests in it without test suites, relative to the folder.
    pub(super) files: Vec<PathBuf>,
}

/// Generates all files, sorted by path.
///
/// # Errors
/// When a built-in template is malformed, which a test excludes.
pub(super) fn files(
    policies: &PolicySet,
    folder: &PolicyFolder,
    settings: &Settings,
) -> Result<Vec<File>, Fault> {
    let mut files = base(policies, folder, settings)?;
    files.extend(chart(policies, folder)?);
    Ok(files)
}

/// Generates `rbac.yaml` alone.
///
/// # Errors
/// As [`files`].
pub(super) fn rights(policies: &PolicySet, settings: &Settings) -> Result<String, Fault> {
    template::filled(&rbac::template(policies), settings).map_err(|error| ill_formed("rbac.yaml", &error))
}

fn base(policies: &PolicySet, folder: &PolicyFolder, settings: &Settings) -> Result<Vec<File>, Fault> {
    let mut files = Vec::new();
    let mut resources = Vec::new();
    let fill = |name: &str, template: &str| {
        template::filled(template, settings).map_err(|error| ill_formed(name, &error))
    };
    for part in PARTS {
        if part.only_if.is_none_or(|(name, value)| settings.get(name) == Some(value)) {
            files.push(file(part.name, &fill(part.name, part.template)?));
            resources.push(part.name.to_owned());
        }
    }
    files.push(file("rbac.yaml", &rights(policies, settings)?));
    files.push(file("webhook.yaml", &fill("webhook.yaml", &webhook_template(policies))?));
    resources.extend([
        "rbac.yaml".to_owned(),
        "webhook.yaml".to_owned(),
        "crds".to_owned(),
        folder.path.display().to_string(),
    ]);
    if settings.get("monitoring") == Some("true") {
        resources.push("monitoring".to_owned());
    }
    files.push(file("kustomization.yaml", &kustomization(&resources)));
    let injected = settings.get("certificates") == Some("cert-manager");
    let definitions = crds::installed(settings.get(NAMESPACE).unwrap_or_default(), injected);
    files.extend(definitions.map(|(name, text)| File::Text { path: Path::new("crds").join(name), text }));
    files.push(file("crds/kustomization.yaml", &kustomization(&crds::names())));
    for (name, template) in monitoring::templates() {
        files.push(file(&format!("monitoring/{name}"), &fill(name, &template)?));
    }
    files.push(file("monitoring/kustomization.yaml", &kustomization(&monitoring::names())));
    let list = policy_list(folder, settings);
    files.push(File::Text { path: folder.path.join("kustomization.yaml"), text: list });
    Ok(files)
}

fn chart(policies: &PolicySet, folder: &PolicyFolder) -> Result<Vec<File>, Fault> {
    let mut files = vec![
        file("chart/Chart.yaml", include_str!("templates/Chart.yaml")),
        file("chart/values.yaml", &Settings::chart_values()),
        file("chart/values.schema.json", &format!("{:#}\n", Settings::chart_schema())),
        file(
            "chart/.helmignore",
            "# Not definitions, and not policies.\nkustomization.yaml\n*.suite.yaml\nREADME.md\n",
        ),
        File::Link { path: "chart/crds".into(), target: "../crds".into() },
        File::Link { path: "chart/policies".into(), target: Path::new("..").join(&folder.path) },
    ];
    let mut add = |name: &str, template: &str, only_if: Option<(&str, &str)>| {
        let guarded = match only_if {
            Some((setting, value)) => format!("#if {setting}={value}\n{template}#end\n"),
            None => template.to_owned(),
        };
        let text = template::chart(&guarded).map_err(|error| ill_formed(name, &error))?;
        files.push(file(&format!("chart/templates/{name}"), &text));
        Ok::<_, Fault>(())
    };
    for part in PARTS.iter().filter(|part| part.in_chart) {
        add(part.name, part.template, part.only_if)?;
    }
    add("rbac.yaml", &rbac::template(policies), None)?;
    add("webhook.yaml", &webhook_template(policies), None)?;
    for (name, template) in monitoring::templates() {
        add(name, &template, Some(("monitoring", "true")))?;
    }
    files.push(file("chart/templates/policies.yaml", &policy_map(folder)));
    Ok(files)
}

/// Returns the webhook configurations as a template: they depend on the policies and on settings.
fn webhook_template(policies: &PolicySet) -> String {
    let endpoint = Endpoint::Service { name: "admit".to_owned(), namespace: "$(namespace)".to_owned() };
    let callee = Callee {
        endpoint,
        own_namespace: Some("$(namespace)"),
        failure_policy: "$(failurePolicy)",
        definitions: true,
    };
    let validating = webhook::configuration(policies, &callee);
    let documents = [Some(validating), webhook::mutating_configuration(policies, &callee)];
    let documents: Vec<_> = documents.iter().flatten().map(webhook_document).collect();
    format!("{CALLERS}{}", documents.join("---\n"))
}

/// Formats a configuration whose metadata depend on the settings.
fn webhook_document(configuration: &Value) -> String {
    let of = |field: &str| json!({field: configuration.get(field)});
    let [version, kind, webhooks] = ["apiVersion", "kind", "webhooks"].map(|field| yaml::write(&of(field)));
    format!("{version}{kind}{WEBHOOK_METADATA}{webhooks}")
}

fn kustomization(resources: &[String]) -> String {
    yaml::write(&json!({"apiVersion": KUSTOMIZE, "kind": "Kustomization", "resources": resources}))
}

/// Returns the kustomization that makes a ConfigMap of the policies. It lies in their own folder, because kustomize reads
/// only files below a kustomization.
fn policy_list(folder: &PolicyFolder, settings: &Settings) -> String {
    let files: Vec<_> = folder.files.iter().map(|path| format!("{}={}", key(path), path.display())).collect();
    let list = json!({
        "apiVersion": KUSTOMIZE,
        "kind": "Kustomization",
        "namespace": settings.get(NAMESPACE).unwrap_or_default(),
        "configMapGenerator": [{"name": "admit-policies", "files": files}],
    });
    format!("{HEAD}{}", yaml::write(&list))
}

/// Returns the same ConfigMap for the chart.
fn policy_map(folder: &PolicyFolder) -> String {
    let mut text = format!(
        "{HEAD}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: admit-policies\n  \
         namespace: {{{{ .Release.Namespace }}}}\ndata:\n"
    );
    for path in &folder.files {
        let line =
            format!("  {}: {{{{ .Files.Get \"policies/{}\" | toJson }}}}\n", key(path), path.display());
        text.push_str(&line);
    }
    text
}

/// Returns the key of a file in the ConfigMap, where slashes are not allowed.
fn key(path: &Path) -> String {
    path.display().to_string().replace('/', "-")
}

fn file(path: &str, text: &str) -> File {
    let head = if path.ends_with(".yaml") { HEAD } else { "" };
    File::Text { path: path.into(), text: format!("{head}{text}") }
}

fn ill_formed(name: &str, error: &TemplateError) -> Fault {
    Fault::internal(format!("the template of {name} is not well formed: {error}"))
}
