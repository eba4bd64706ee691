//! The figures of labs in wall time, beside those in virtual time.
//!
//! A shared machine is slower than the model, so that a figure may miss its tolerance in wall time without
//! a defect. It is never much faster than the limits, and seldom slower by half: a figure outside these
//! bounds is an error. Both clocks run in one command, so the comparison is a ratio.

use crate::error::XtaskError;
use serde_json::Value;
use std::io::Write;

/// The least and the most of a figure in virtual time that its figure in wall time may be.
const BOUNDS: (f64, f64) = (0.5, 1.1);

/// Units of figures that are rates. Latencies and shares follow from them.
const RATES: [&str; 2] = ["IOPS", "MiB/s"];

/// Compares the rates in the JSON of `weir lab run --clock both`, and prints each that is out of bounds.
/// Returns the number of compared rates, and of those out of bounds.
///
/// # Errors
///
/// [`XtaskError::Labs`] if the text is not the output of such a run, or has no rates.
pub fn check(text: &str, out: &mut dyn Write) -> Result<(usize, usize), XtaskError> {
    let labs: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| XtaskError::Labs(format!("the input is no list of labs: {error}")))?;
    let (mut compared, mut outside) = (0, 0);
    for lab in &labs {
        let name = lab["lab"].as_str().unwrap_or("a lab");
        for figure in lab["figures"].as_array().into_iter().flatten() {
            let id = figure["id"].as_str().unwrap_or("a figure");
            if !figure["unit"].as_str().is_some_and(|unit| RATES.contains(&unit)) {
                continue;
            }
            let both = (figure["virtual"].as_f64(), figure["wall"].as_f64());
            let (Some(virtual_time), Some(wall)) = both else {
                let reason = format!("{name}: {id} was not measured with both clocks");
                return Err(XtaskError::Labs(reason));
            };
            compared += 1;
            let ratio = wall / virtual_time;
            if !(BOUNDS.0..=BOUNDS.1).contains(&ratio) {
                outside += 1;
                let (least, most) = BOUNDS;
                writeln!(
                    out,
                    "{name}: {id}: {wall:.0} in wall time, {ratio:.2} of {virtual_time:.0} in virtual time; \
                     {least} to {most} is expected"
                )
                .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
            }
        }
    }
    if compared == 0 {
        return Err(XtaskError::Labs("there is no rate in IOPS or MiB/s".to_owned()));
    }
    Ok((compared, outside))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn labs(figures: &str) -> String {
        format!("[{{\"lab\": \"l\", \"figures\": [{figures}]}}]")
    }

    fn figure(unit: &str, wall: &str) -> String {
        format!("{{\"id\": \"f\", \"unit\": \"{unit}\", \"virtual\": 1000.0, \"wall\": {wall}}}")
    }

    fn checked(text: &str) -> Result<((usize, usize), String), String> {
        let mut out = Vec::new();
        let counts = check(text, &mut out).map_err(|error| error.to_string())?;
        Ok((counts, String::from_utf8(out).expect("UTF-8")))
    }

    #[test]
    fn rates_in_wall_time_are_between_half_and_a_tenth_more() {
        for (wall, outside) in [("499", 1), ("500", 0), ("1100", 0), ("1101", 1)] {
            let ((compared, found), said) = checked(&labs(&figure("IOPS", wall))).expect("labs");
            assert_eq!((compared, found), (1, outside), "{wall}");
            assert_eq!(said.is_empty(), outside == 0, "{said}");
        }
        let text = [figure("MiB/s", "100"), figure("share", "1")].join(", ");
        let (counts, said) = checked(&labs(&text)).expect("labs");
        assert_eq!(counts, (1, 1));
        assert_eq!(
            said,
            "l: f: 100 in wall time, 0.10 of 1000 in virtual time; 0.5 to 1.1 is expected\n"
        );
    }

    #[test]
    fn a_run_that_compares_nothing_is_an_error() {
        let check = |text: &str, expect: &str| {
            let said = checked(text).expect_err("an error");
            assert!(said.starts_with(expect), "{said}");
        };
        check("not JSON", "the input is no list of labs: ");
        check(&labs(""), "there is no rate in IOPS or MiB/s");
        check(&labs(&figure("share", "1")), "there is no rate in IOPS or MiB/s");
        check(&labs(&figure("IOPS", "null")), "l: f was not measured with both clocks");
    }
}
