#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace neuron::fakes {

// What a file of a hostile machine may be called, and say: sets a terminal's title, colours, turns the text around.
inline const std::string kHostileText = "\x1b]0;owned\x07\x1b[31m\u202e";

// True when `text` holds what kHostileText would do to a terminal; line ends and tabs are no harm.
inline bool is_raw(const std::string& text) {
  for (const char byte : text) {
    if ((byte >= 0 && byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return true;
  }
  return text.find("\u202e") != std::string::npos;
}

// Ways to make a simulated machine hostile; see make_hostile().
enum class Hostility {
  links_through_a_file,  // every link leads through a file of hostile name, and so to an error that names it
  looping_links,         // every link leads to a hostile name that leads to itself
  links_to_fifos,        // every link leads to a FIFO of hostile name
  names,                 // beside every folder stand some of hostile names
  texts,                 // every file says something hostile
  longer_texts,          // every file says something hostile after what it said
  folders                // a folder with a hostile entry is in the place of every file
};

namespace hostile {

namespace fs = std::filesystem;

inline void redirect(const fs::path& link, Hostility how) {
  fs::remove(link);
  const fs::path other = link.parent_path() / kHostileText;
  fs::create_symlink(how == Hostility::links_through_a_file ? kHostileText + "/x" : kHostileText, link);
  if (fs::exists(fs::symlink_status(other))) return;
  if (how == Hostility::links_through_a_file) std::ofstream(other) << "0\n";
  if (how == Hostility::looping_links) fs::create_symlink(kHostileText, other);
  if (how == Hostility::links_to_fifos) ::mkfifo(other.c_str(), 0600);
}

inline void change_file(const fs::path& file, Hostility how) {
  if (how == Hostility::texts) std::ofstream(file) << kHostileText << "0\n";
  if (how == Hostility::longer_texts) std::ofstream(file, std::ios::app) << kHostileText << '\n';
  if (how != Hostility::folders) return;
  fs::remove(file);
  fs::create_directories(file / kHostileText);
}

}  // namespace hostile

// Changes the machine below `root`, which a test has just written.
inline void make_hostile(const std::string& root, Hostility how) {
  namespace fs = std::filesystem;
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::recursive_directory_iterator(root)) entries.push_back(entry);
  for (const fs::directory_entry& entry : entries) {
    const fs::path& path = entry.path();
    if (entry.is_symlink()) {
      if (how <= Hostility::links_to_fifos) hostile::redirect(path, how);
    } else if (entry.is_regular_file()) {
      hostile::change_file(path, how);
    } else if (entry.is_directory() && how == Hostility::names) {
      for (const std::string& name :
           {path.filename().string() + kHostileText, "neuron0" + kHostileText, kHostileText + ".sock"}) {
        fs::create_directory(path.parent_path() / name);
      }
    }
  }
}

}  // namespace neuron::fakes
