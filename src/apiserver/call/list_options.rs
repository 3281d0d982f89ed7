//! Parses the options of lists, watches and deletions of collections.

use admit_apimachinery::selector::{LabelSelector, field_terms};

use super::options::{Query, invalid_options};
use crate::status::{Cause, Refusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// `ListOptions`, for lists, watches and deletions of collections.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// Empty when none was given.
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
    /// 0: no limit.
    pub limit: usize,
    pub continue_token: String,
    pub timeout_seconds: Option<u64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// # Errors
    /// 400 for invalid numbers and selectors, 422 for options that exclude one another.
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Refusal> {
        let timeout = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let options = Self {
            label_selector: query.text("labelSelector"),
            field_selector: query.text("fieldSelector"),
            resource_version: query.text("resourceVersion"),
            version_match: match query.get("resourceVersionMatch") {
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue"),
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
            allow_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            send_initial_events: query.flag("sendInitialEvents"),
        };
        options.check_selectors()?;
        let text = query.text("resourceVersionMatch");
        let causes = if watch { options.watch_causes(&text) } else { options.list_causes(&text) };
        if causes.is_empty() { Ok(options) } else { Err(invalid_options("ListOptions", causes)) }
    }

    /// Checks the syntax of the selectors; whether the resource supports their fields is checked after all options.
    fn check_selectors(&self) -> Result<(), Refusal> {
        let refused = |why: String| Refusal::bad_request(why);
        LabelSelector::parse(&self.label_selector).map_err(|error| refused(error.to_string()))?;
        field_terms(&self.field_selector).map_err(|error| refused(error.to_string()))?;
        Ok(())
    }

    /// Returns whether the request asks for a watch.
    #[must_use]
    pub(crate) fn wants_watch(query: &Query) -> bool {
        query.flag("watch").unwrap_or(false)
    }

    fn watch_causes(&self, match_text: &str) -> Vec<Cause> {
        let field = "resourceVersionMatch";
        let mut causes = Vec::new();
        if self.send_initial_events.is_some() && match_text != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden(field, why));
        }
        if match_text.is_empty() {
            return causes;
        }
        if self.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden(field, why));
        }
        if match_text != "NotOlderThan" {
            causes.push(Cause::unsupported(field, &match_text.into(), &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            causes.push(Cause::forbidden(field, CONTINUED));
        }
        causes
    }

    fn list_causes(&self, match_text: &str) -> Vec<Cause> {
        let field = "resourceVersionMatch";
        let mut causes = Vec::new();
        if !match_text.is_empty() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                causes.push(Cause::forbidden(field, why));
            }
            if !self.continue_token.is_empty() {
                causes.push(Cause::forbidden(field, CONTINUED));
            }
            if self.version_match.is_none() {
                causes.push(Cause::unsupported(field, &match_text.into(), &["Exact", "NotOlderThan", ""]));
            }
            if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                causes.push(Cause::forbidden(field, why));
            }
        }
        if self.send_initial_events.is_some() {
            causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        causes
    }
}

const CONTINUED: &str = "resourceVersionMatch is forbidden when continue is provided";
