//! Parses mail addresses as Go's `mail.ParseAddress` does: `a@b`, `<a@b>`, `Name <a@b>`, with comments after.

pub(super) fn is_address(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    if let Some(rest) = addr_spec(text)
        && only_comments(rest)
    {
        return true;
    }
    let rest = phrase(text);
    let Some(inner) = rest.strip_prefix('<') else { return false };
    addr_spec(inner).and_then(|rest| rest.strip_prefix('>')).is_some_and(only_comments)
}

/// Parses local part, `@`, domain; returns the rest.
fn addr_spec(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    let rest = if text.starts_with('"') {
        quoted_string(text).filter(|rest| text.len().saturating_sub(rest.len()) > 2)?
    } else {
        dot_atom(text)?
    };
    let domain = rest.trim_start_matches([' ', '\t']).strip_prefix('@')?.trim_start_matches([' ', '\t']);
    match domain.strip_prefix('[') {
        None => dot_atom(domain),
        Some(literal) => {
            let (address, rest) = literal.split_once(']')?;
            let address = address.strip_prefix("IPv6:").unwrap_or(address);
            address.parse::<std::net::IpAddr>().ok()?;
            Some(rest)
        }
    }
}

/// Parses the words before an address in angle brackets; returns the rest.
fn phrase(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let after = if rest.starts_with('"') {
            quoted_string(rest)
        } else {
            let end = rest.find(|c| !is_atom_char(c) && c != '.').unwrap_or(rest.len());
            rest.get(end..).filter(|_| end > 0)
        };
        match after {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// Parses atoms with single dots between them; returns the rest.
fn dot_atom(text: &str) -> Option<&str> {
    let end = text.find(|c| !is_atom_char(c) && c != '.').unwrap_or(text.len());
    let (atom, rest) = text.split_at_checked(end)?;
    atom.split('.').all(|part| !part.is_empty()).then_some(rest)
}

fn quoted_string(text: &str) -> Option<&str> {
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some(chars.as_str()),
            '\\' => {
                chars.next().filter(|c| !c.is_ascii_control() || *c == '\t')?;
            }
            c if c.is_ascii_control() && c != '\t' => return None,
            _ => {}
        }
    }
}

fn only_comments(text: &str) -> bool {
    let mut depth = 0_u32;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' if depth == 0 => return false,
            ')' => depth = depth.saturating_sub(1),
            '\\' if depth > 0 => {
                chars.next();
            }
            ' ' | '\t' => {}
            _ if depth == 0 => return false,
            _ => {}
        }
    }
    depth == 0
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}
