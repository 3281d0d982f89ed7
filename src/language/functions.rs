//! Formats signatures and descriptions of functions and macros.

use admit_analysis::releases::{FIRST, Release, offered_from};
use admit_cel::syntax::Macro;
use admit_cel::{Env, Overload, Type, Version};

/// The name of a function, with its receiver type.
pub(crate) struct Signature<'s> {
    /// The type before the dot.
    pub(crate) receiver: Option<Type>,
    /// The name, with its namespace.
    pub(crate) name: &'s str,
}

impl<'s> Signature<'s> {
    /// Parses `list(T).sort() -> list(T)`, `size(string) -> int`, `ip.isCanonical(string) -> bool`.
    pub(crate) fn of(signature: &'s str, env: &Env) -> Self {
        let call = signature.rsplit_once(" -> ").map_or(signature, |(call, _)| call);
        let mut depth = 0_usize;
        let mut head = call;
        for (at, c) in call.char_indices().rev() {
            match c {
                ')' => depth = depth.saturating_add(1),
                '(' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                head = call.get(..at).unwrap_or(call);
                break;
            }
        }
        match head.rsplit_once('.') {
            Some((before, name)) => match env.parse_type(before) {
                Some(receiver) => Self { receiver: Some(receiver), name },
                None => Self { receiver: None, name: head },
            },
            None => Self { receiver: None, name: head },
        }
    }

    /// Reports whether it is an operator, which is not called by name.
    pub(crate) fn is_operator(&self) -> bool {
        !self.name.starts_with(|c: char| c.is_alphabetic())
    }
}

/// Reports whether a function with that receiver can be called on a value of that type.
pub(crate) fn fits(receiver: &Type, actual: &Type) -> bool {
    match (receiver, actual) {
        (Type::Param(_) | Type::Dyn | Type::Any, _) | (_, Type::Dyn | Type::Any) => true,
        (Type::List(_), Type::List(_))
        | (Type::Map(..), Type::Map(..))
        | (Type::Optional(_), Type::Optional(_)) => true,
        _ => receiver == actual,
    }
}

/// Formats an overload for display.
pub(crate) fn told(row: &Overload) -> String {
    format!("```cel\n{}\n```\n{} {}", row.signature, row.doc, since(offered_from(row)))
}

/// Formats a macro for display.
pub(crate) fn told_macro(since_version: Version, found: &Macro) -> String {
    let (usage, doc) = found.doc.split_once(": ").unwrap_or((found.name, found.doc));
    let Version(major, minor) = since_version;
    let release = Release(Version(major, minor.saturating_add(1)));
    format!("```cel\n{usage}\n```\nMacro: {doc} {}", since(release))
}

fn since(release: Release) -> String {
    if release <= FIRST {
        format!("Kubernetes {FIRST} or before.")
    } else {
        format!("Since Kubernetes {release}.")
    }
}
