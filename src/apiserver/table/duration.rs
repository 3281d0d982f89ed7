//! Formats an age in its two most significant units.

/// Formats seconds: `90s`, `5m3s`, `47m`, `3h12m`, `5d4h`, `2y30d`. A clock skew of one second is `0s`; a larger one `<invalid>`.
pub(super) fn human(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let two = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    let days = hours / 24;
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, 'm', seconds % 60, 's')
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        two(days, 'd', hours % 24, 'h')
    } else if days < 2 * 365 {
        format!("{days}d")
    } else if days < 8 * 365 {
        two(days / 365, 'y', days % 365, 'd')
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn units_grow_with_the_time() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 5, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 5 * MINUTE, "7h5m"),
            (47 * HOUR, "47h"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (731 * DAY, "2y1d"),
            (9 * 365 * DAY, "9y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }
}
