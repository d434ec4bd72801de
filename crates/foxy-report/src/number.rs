//! Formats numbers for people: few digits, commas between thousands, no trailing zeros.

/// Formats `value` with at most `digits` significant digits. Keeps all digits before the decimal
/// point, as in 1,058,206. Returns "–" for a value that is not finite.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".into();
    }
    if !(1e-6..1e15).contains(&magnitude) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let whole_digits = magnitude.log10().floor() as i32 + 1;
    let decimals = usize::try_from(digits as i32 - whole_digits).unwrap_or(0);
    trimmed(value, decimals)
}

/// Formats a number with four significant digits, for tables and tooltips.
pub fn readable(value: f64) -> String {
    significant(value, 4)
}

/// Formats `value` with exactly `decimals` decimals and commas between thousands.
pub(crate) fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let sign = if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) { "" } else { sign };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Formats like [`with_decimals`], but removes trailing zeros of the fraction.
pub(crate) fn trimmed(value: f64, decimals: usize) -> String {
    let text = with_decimals(value, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_shown_and_whole_numbers_are_never_cut() {
        let check = |value: f64, expected: &str| assert_eq!(readable(value), expected, "{value}");
        check(0.0, "0");
        check(-0.0, "0");
        check(133.0, "133");
        check(326.3, "326.3");
        check(1.936_59, "1.937");
        check(0.94, "0.94");
        check(-0.012_343, "-0.01234");
        check(999.96, "1,000");
        check(1_058_206.0, "1,058,206");
        check(-12_345.6, "-12,346");
        check(1.25e-7, "1.250e-7");
        check(f64::NAN, "–");
        check(f64::INFINITY, "–");
    }

    #[test]
    fn decimals_are_kept_when_asked_for_and_zero_has_no_sign() {
        assert_eq!(with_decimals(1234.5, 2), "1,234.50");
        assert_eq!(with_decimals(-0.001, 1), "0.0");
        assert_eq!(trimmed(2.50, 3), "2.5");
    }
}
