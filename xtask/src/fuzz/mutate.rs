//! Mutations of inputs: bits, bytes, numbers at their limits, tokens, lines, and halves of other
//! inputs.

use super::corpus::Corpus;
use weir_random::Rng;

/// Maximum size of an input in bytes.
pub const MAX_INPUT: usize = 8 << 10;

/// Boundary numbers: of integer widths and signs, and of sizes in the protocol and the files.
const LIMITS: [u64; 25] = [
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    511,
    512,
    4095,
    4096,
    65_535,
    65_536,
    (1 << 20) - 1,
    1 << 20,
    (32 << 20) + 1,
    (64 << 20) + 1,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 60,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Returns the input of an iteration. The first iterations are the corpus itself.
#[must_use]
pub fn input(corpus: &Corpus, seed: u64, iteration: u64) -> Vec<u8> {
    let as_it_is = usize::try_from(iteration).ok().and_then(|n| corpus.inputs.get(n));
    if let Some(input) = as_it_is {
        return input.clone();
    }
    let mut rng = Rng::new(&[seed, iteration]);
    let mut input = rng.pick(&corpus.inputs).cloned().unwrap_or_default();
    // Few changes at a time leave most of an input valid.
    let changes = 1 + rng.index(8) * rng.index(2);
    for _ in 0..changes {
        if corpus.is_text && rng.index(3) > 0 {
            change_text(&mut input, corpus, &mut rng);
        } else {
            change_bytes(&mut input, corpus, &mut rng);
        }
    }
    input.truncate(MAX_INPUT);
    input
}

fn change_bytes(input: &mut Vec<u8>, corpus: &Corpus, rng: &mut Rng) {
    let at = rng.index(input.len() + 1);
    match rng.index(9) {
        0 => flip(input, rng),
        1 => overwrite(input, at, &[rng.next_u64().to_le_bytes()[0]]),
        2 | 3 => {
            let number = limit(rng).to_be_bytes();
            let width = [1, 2, 4, 8][rng.index(4)];
            overwrite(input, at, &number[8 - width..]);
        }
        4 => overwrite(input, at, rng.pick(&corpus.tokens).map_or(&[], Vec::as_slice)),
        5 => insert(input, at, rng.pick(&corpus.tokens).map_or(&[], Vec::as_slice)),
        6 => input.truncate(at),
        7 => {
            let end = at + rng.index((input.len() - at).min(64) + 1);
            if rng.index(2) == 0 {
                input.drain(at..end);
            } else {
                let again = input[at..end].to_vec();
                insert(input, at, &again);
            }
        }
        _ => {
            let other = rng.pick(&corpus.inputs).map_or(&[][..], Vec::as_slice);
            let from = rng.index(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}

fn change_text(input: &mut Vec<u8>, corpus: &Corpus, rng: &mut Rng) {
    match rng.index(4) {
        0 | 1 => {
            let numbers = runs(input, u8::is_ascii_digit);
            let Some(&(start, end)) = rng.pick(&numbers) else { return };
            input.splice(start..end, limit(rng).to_string().into_bytes());
        }
        2 => {
            let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            let words = runs(input, is_word);
            let (Some(&(start, end)), Some(token)) = (rng.pick(&words), rng.pick(&corpus.tokens))
            else {
                return;
            };
            input.splice(start..end, token.iter().copied());
        }
        _ => change_lines(input, corpus, rng),
    }
}

/// Deletes, repeats or moves a line, or copies one from another input.
fn change_lines(input: &mut Vec<u8>, corpus: &Corpus, rng: &mut Rng) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let at = rng.index(lines.len());
    match rng.index(4) {
        0 if !lines.is_empty() => {
            lines.remove(at);
        }
        1 if !lines.is_empty() => lines.insert(at, lines[at]),
        2 if !lines.is_empty() => {
            let to = rng.index(lines.len());
            lines.swap(at, to);
        }
        _ => {
            let other = rng.pick(&corpus.inputs).map_or(&[][..], Vec::as_slice);
            let others: Vec<&[u8]> = other.split_inclusive(|b| *b == b'\n').collect();
            lines.insert(at, rng.pick(&others).copied().unwrap_or_default());
        }
    }
    *input = lines.concat();
}

/// Returns a boundary number, sometimes off by one.
fn limit(rng: &mut Rng) -> u64 {
    let number = rng.pick(&LIMITS).copied().unwrap_or(0);
    match rng.index(4) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_sub(1),
        _ => number,
    }
}

/// Returns the ranges of bytes for which `is` holds.
fn runs(input: &[u8], is: impl Fn(&u8) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in input.iter().enumerate().filter(|(_, byte)| is(byte)) {
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

fn flip(input: &mut [u8], rng: &mut Rng) {
    let at = rng.index(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << rng.index(8);
    }
}

fn overwrite(input: &mut [u8], at: usize, with: &[u8]) {
    input[at..].iter_mut().zip(with).for_each(|(byte, new)| *byte = *new);
}

fn insert(input: &mut Vec<u8>, at: usize, what: &[u8]) {
    input.splice(at..at, what.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn corpus(is_text: bool) -> Corpus {
        let inputs = vec![b"one = 1\ntwo = 22\n".to_vec(), Vec::new(), b"three".to_vec()];
        Corpus { inputs, tokens: vec![b"[job]".to_vec()], is_text }
    }

    #[test]
    fn the_corpus_comes_first_as_it_is() {
        let corpus = corpus(true);
        for (n, expect) in (0..).zip(&corpus.inputs) {
            assert_eq!(&input(&corpus, 7, n), expect);
        }
    }

    #[test]
    fn the_same_seed_and_iteration_give_the_same_input_and_others_another() {
        for is_text in [false, true] {
            let corpus = corpus(is_text);
            let all = |seed| (3..2_003).map(|n| input(&corpus, seed, n)).collect::<Vec<_>>();
            let first = all(1);
            assert_eq!(first, all(1));
            assert_ne!(first, all(2));
            let different = first.iter().collect::<HashSet<_>>().len();
            assert!(different > 500, "only {different} of 2,000 inputs are different");
        }
    }

    #[test]
    fn mutations_bring_tokens_limits_and_halves_of_other_inputs() {
        let corpus = corpus(true);
        let inputs: Vec<Vec<u8>> = (3..20_000).map(|n| input(&corpus, 1, n)).collect();
        let some = |part: &[u8]| inputs.iter().any(|i| i.windows(part.len()).any(|w| w == part));
        assert!(some(b"[job]"));
        assert!(some(b"one = 18446744073709551615\n"));
        assert!(some(&u32::MAX.to_be_bytes()));
        assert!(some(b"two = 22\none = 1\n"));
        assert!(inputs.iter().any(|i| i.starts_with(b"one") && i.ends_with(b"ee")));
        assert!(inputs.iter().all(|input| input.len() <= MAX_INPUT));
    }

    #[test]
    fn nothing_to_start_from_is_no_reason_to_panic() {
        for is_text in [false, true] {
            let corpus = Corpus { inputs: Vec::new(), tokens: Vec::new(), is_text };
            (0..2_000).for_each(|n| assert!(input(&corpus, 1, n).len() <= MAX_INPUT));
        }
    }
}
