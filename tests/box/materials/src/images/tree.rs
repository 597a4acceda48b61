//! What a layer holds: files of this host, texts and links, written in one order and without this host's
//! times and owners.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

/// The content of one layer. Paths are relative to the image's root.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug)]
struct Entry {
    what: What,
    mode: u32,
    owner: u64,
}

#[derive(Debug)]
enum What {
    Folder,
    File(PathBuf),
    Text(Vec<u8>),
    Link(PathBuf),
}

impl Tree {
    /// A folder that belongs to user and group `owner`.
    pub fn folder(&mut self, path: impl AsRef<Path>, mode: u32, owner: u64) {
        self.put(path.as_ref(), Entry { what: What::Folder, mode, owner });
    }

    /// A file with these bytes.
    pub fn text(&mut self, path: impl AsRef<Path>, text: impl Into<Vec<u8>>, mode: u32) {
        self.put(path.as_ref(), Entry { what: What::Text(text.into()), mode, owner: 0 });
    }

    /// A symbolic link.
    pub fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.put(path.as_ref(), Entry { what: What::Link(target.into()), mode: 0o777, owner: 0 });
    }

    /// A file of this host, or the one that a link of this host leads to; it can be run when its owner can
    /// run it here.
    pub fn file(&mut self, path: impl AsRef<Path>, from: impl Into<PathBuf>) -> io::Result<()> {
        let from = from.into();
        let is_program = fs::metadata(&from)?.permissions().mode() & 0o100 != 0;
        let mode = if is_program { 0o755 } else { 0o644 };
        self.put(path.as_ref(), Entry { what: What::File(from), mode, owner: 0 });
        Ok(())
    }

    /// All of a folder of this host but the files and folders whose names are left out.
    pub fn copy(&mut self, path: impl AsRef<Path>, from: &Path, leave_out: &[&str]) -> io::Result<()> {
        self.folder(path.as_ref(), 0o755, 0);
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if leave_out.iter().any(|left_out| OsStr::new(left_out) == name) {
                continue;
            }
            let inside = path.as_ref().join(&name);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.copy(inside, &entry.path(), leave_out)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path())?;
                // A link out of the folder would lead nowhere in the image.
                if target.is_absolute() {
                    self.file(inside, entry.path())?;
                } else {
                    self.link(inside, target);
                }
            } else {
                self.file(inside, entry.path())?;
            }
        }
        Ok(())
    }

    /// Writes the layer's tar. Equal trees give equal bytes.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut tar = Builder::new(out);
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner);
            header.set_gid(entry.owner);
            header.set_mtime(0);
            header.set_size(0);
            match &entry.what {
                What::Folder => {
                    header.set_entry_type(EntryType::Directory);
                    tar.append_data(&mut header, path.join(""), io::empty())?;
                }
                What::Text(text) => {
                    header.set_size(u64::try_from(text.len()).map_err(io::Error::other)?);
                    tar.append_data(&mut header, path, text.as_slice())?;
                }
                What::File(from) => {
                    let file = File::open(from)?;
                    header.set_size(file.metadata()?.len());
                    tar.append_data(&mut header, path, file)?;
                }
                What::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    tar.append_link(&mut header, path, target)?;
                }
            }
        }
        tar.into_inner()?.flush()
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            self.entries.entry(parent.to_owned()).or_insert(Entry {
                what: What::Folder,
                mode: 0o755,
                owner: 0,
            });
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(tree: &Tree) -> Vec<u8> {
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn equal_trees_are_equal_bytes_whatever_the_order_and_the_hosts_times() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let make = |reversed: bool| {
            fs::write(&program, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
            let mut tree = Tree::default();
            let mut steps: Vec<fn(&mut Tree, &Path)> = vec![
                |tree, program| tree.file("usr/bin/program", program).unwrap(),
                |tree, _| tree.folder("var/lib/data", 0o700, 999),
                |tree, _| tree.link("bin", "usr/bin"),
            ];
            if reversed {
                steps.reverse();
            }
            for step in steps {
                step(&mut tree, &program);
            }
            bytes(&tree)
        };
        assert_eq!(make(false), make(true));
    }

    #[test]
    fn a_layer_has_parents_first_and_no_owner_or_time_but_those_that_were_asked_for() {
        let mut tree = Tree::default();
        tree.folder("var/lib/data", 0o700, 999);
        tree.text("etc/motd", "hello", 0o644);
        tree.link("bin", "usr/bin");
        let bytes = bytes(&tree);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), 0);
                (
                    entry.path().unwrap().display().to_string(),
                    header.mode().unwrap(),
                    header.uid().unwrap(),
                    header.gid().unwrap(),
                )
            })
            .collect();
        let expected = [
            ("bin", 0o777, 0, 0),
            ("etc/", 0o755, 0, 0),
            ("etc/motd", 0o644, 0, 0),
            ("var/", 0o755, 0, 0),
            ("var/lib/", 0o755, 0, 0),
            ("var/lib/data/", 0o700, 999, 999),
        ];
        assert_eq!(seen, expected.map(|(path, mode, user, group)| (path.to_owned(), mode, user, group)));
    }

    #[test]
    fn a_copied_folder_keeps_its_inner_links_and_loses_what_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bitcode")).unwrap();
        fs::write(folder.path().join("bitcode/x.bc"), "x").unwrap();
        fs::write(folder.path().join("lib.so.1"), "x").unwrap();
        std::os::unix::fs::symlink("lib.so.1", folder.path().join("lib.so")).unwrap();
        let mut tree = Tree::default();
        tree.copy("opt", folder.path(), &["bitcode"]).unwrap();
        let paths: Vec<_> = tree
            .entries
            .iter()
            .map(|(path, entry)| (path.to_str().unwrap(), matches!(entry.what, What::Link(_))))
            .collect();
        assert_eq!(paths, [("opt", false), ("opt/lib.so", true), ("opt/lib.so.1", false)]);
    }
}
