//! Names as they are compared.

/// Returns the candidate nearest to `name`, without case and Azure's `Standard_`
/// ([`weir_units::nearest`]).
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    weir_units::nearest_by(name, candidates, plain)
}

/// Returns a name without case and Azure's `Standard_`.
pub(crate) fn plain(name: &str) -> String {
    const PREFIX: &str = "standard_";
    let name = name.trim();
    let rest = name.split_at_checked(PREFIX.len());
    let rest = rest.and_then(|(start, rest)| start.eq_ignore_ascii_case(PREFIX).then_some(rest));
    rest.unwrap_or(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_azure_is_not_compared() {
        let names = ["Standard_DS14_v2", "Standard_DS4_v2"];
        assert_eq!(nearest("ds14_V3", names), Some("Standard_DS14_v2"));
        assert_eq!(nearest("DS99", ["DS1", "DS11", "Standard_D99"]), Some("Standard_D99"));
        assert_eq!(nearest("hamster", names), None);
    }
}
