//! Determines the obfuscation that a MustGather and a ConfigMap request. Pure.

use super::crd::{MustGatherSpec, Obfuscate, PersistentVolume};
use super::fetch::ObfuscationView;
use super::job::{NoJob, Obfuscation};
use crate::gather::must_gather::clean::Cleaner;
use crate::gather::obfuscate::rules::Ruleset;

/// The largest rules in bytes for the variable of a Job: the kernel's limit is twice as much.
const MAX_RULES: usize = 64 * 1024;

/// Returns the obfuscation for the Job.
pub(super) fn ordered(view: &ObfuscationView) -> Result<Obfuscation, NoJob> {
    let rules = match &view.rules {
        None => None,
        Some(Err(missing)) => return Err(NoJob::Passing(missing.to_string())),
        Some(Ok(text)) if text.len() > MAX_RULES => {
            return Err(NoJob::Final(format!("rules of obfuscation have {MAX_RULES} bytes at most")));
        }
        Some(Ok(text)) => {
            let ruleset = Ruleset::parse(text).map_err(|error| error.to_string());
            let usable =
                ruleset.and_then(|rules| Cleaner::new(&rules, &[]).map_err(|error| error.to_string()));
            usable.map_err(|error| NoJob::Final(format!("Obfuscation validation failed: {error}")))?;
            Some(text.clone())
        }
    };
    let domains = view.domains.clone().map_err(NoJob::Passing)?;
    Ok(Obfuscation { rules, domains })
}

/// Returns why the requested obfuscation is impossible.
pub(super) fn impossible(spec: &MustGatherSpec) -> Option<&'static str> {
    let Obfuscate { enabled, config, obfuscation_config_ref, source } = spec.obfuscate.clone()?;
    let bare = |source: &PersistentVolume| source.sub_path.trim_matches('/').is_empty();
    let gathers = spec.gather_spec.is_some() || spec.storage.is_some() || spec.audit();
    [
        (
            config.is_some() && obfuscation_config_ref.is_some(),
            "config and obfuscationConfigRef are both set",
        ),
        (source.is_some() && !enabled, "obfuscate.source is set, and obfuscate.enabled is not"),
        (
            enabled && source.is_none() && spec.sftp().is_none() && spec.storage.is_none(),
            "what is obfuscated goes nowhere: set uploadTarget, storage or obfuscate.source",
        ),
        (source.is_some() && gathers, "nothing is gathered where obfuscate.source is set"),
        (
            spec.sftp().is_none() && source.as_ref().is_some_and(bare),
            "obfuscate.source.subPath is needed where nothing is uploaded: the result lies beside it",
        ),
    ]
    .into_iter()
    .find_map(|(wrong, reason)| wrong.then_some(reason))
}
