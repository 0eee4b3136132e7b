//! The line of a file to which a problem refers, with carets below the wrong part.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Longer lines are not shown.
const LONGEST_LINE: usize = 10_000;

/// The line of this number, with carets below these bytes of it; empty if the line is too long to be read.
pub(crate) fn excerpt(line: &str, number: usize, marked: Range<usize>) -> String {
    if line.len() > LONGEST_LINE {
        return String::new();
    }
    let snippet = Snippet::source(line).line_start(number).annotation(AnnotationKind::Primary.span(marked));
    Renderer::plain().render(&[Group::with_level(Level::ERROR).element(snippet)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_below_what_is_marked() {
        assert_eq!(excerpt("rat = \"5s\"", 12, 0..3), "   |\n12 | rat = \"5s\"\n   | ^^^");
    }

    #[test]
    fn tabs_and_wide_characters_take_their_columns() {
        assert_eq!(excerpt("\ta = 1", 1, 1..2), "  |\n1 |     a = 1\n  |     ^");
        assert_eq!(excerpt("\"日本\" = 1", 1, 11..12), "  |\n1 | \"日本\" = 1\n  |          ^");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert!(!excerpt("a = '\u{1b}[31m'", 1, 4..10).contains('\u{1b}'));
    }

    #[test]
    fn a_line_too_long_to_read_is_left_out() {
        assert_eq!(excerpt(&"1,".repeat(LONGEST_LINE), 1, 0..1), "");
    }
}
