//! Parts of an export that is divided because it is large.

/// Number of digits of the number of a part in the name of its file.
const DIGITS: usize = 5;

/// Part of a file. The parts, one after the other, are the file.
///
/// # Examples
/// ```
/// use webtwin_core::applications::file_part::FilePart;
///
/// assert_eq!(FilePart::WHOLE.file_name("urls.txt"), "urls.txt");
/// let part = FilePart { number: 2, count: 3 };
/// assert_eq!(part.file_name("urls.txt"), "urls-00002.txt");
/// assert!(FilePart::is_part("urls-00002.txt", "urls.txt"));
/// assert!(FilePart::is_part("urls.txt", "urls.txt"));
/// assert!(!FilePart::is_part("add-urls.txt", "urls.txt"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// Number of the part, from 0.
    pub number: usize,
    /// Number of all parts of the file.
    pub count: usize,
}

impl FilePart {
    /// The only part of a file.
    pub const WHOLE: FilePart = FilePart { number: 0, count: 1 };

    /// True if the part begins the file.
    pub fn is_first(self) -> bool {
        self.number == 0
    }

    /// True if the part ends the file.
    pub fn is_last(self) -> bool {
        self.number + 1 == self.count
    }

    /// Returns the name of the part of the file with the given name, which has an extension. The
    /// only part has the name of the file.
    pub fn file_name(self, name: &str) -> String {
        match name.rsplit_once('.') {
            Some((stem, extension)) if self.count > 1 => format!("{stem}-{:0DIGITS$}.{extension}", self.number),
            _ => name.into(),
        }
    }

    /// True if `file_name` is the name of a part of the file with the given name. Names of parts
    /// ascend.
    pub fn is_part(file_name: &str, name: &str) -> bool {
        let Some((stem, extension)) = name.rsplit_once('.') else { return file_name == name };
        let number = file_name
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(extension))
            .and_then(|rest| rest.strip_suffix('.'));
        let is_number = |text: &str| text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        file_name == name || number.is_some_and(is_number)
    }
}
