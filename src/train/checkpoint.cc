#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/safetensors.h"

namespace headway::train {
namespace {

namespace fs = std::filesystem;
constexpr int kVersion = 1;

std::vector<TensorToSave> tensors(const graph::Variables& variables, graph::Backend& backend,
                                  graph::Role role) {
  std::vector<TensorToSave> list;
  for (int i : variables.with(role)) {
    list.push_back({variables[i].name, backend.stored_as(i), variables[i].type.shape, backend.storage(i)});
  }
  return list;
}

void add(Hasher& hasher, const std::vector<TensorToSave>& list) {
  for (const TensorToSave& t : list) {
    hasher.add(t.name);
    hasher.add(t.data, static_cast<std::size_t>(elements(t.shape) * size_of(t.dtype)));
  }
}

std::string content_hash(const graph::Variables& variables, graph::Backend& backend) {
  Hasher hasher;
  add(hasher, tensors(variables, backend, graph::Role::parameter));
  add(hasher, tensors(variables, backend, graph::Role::state));
  return hasher.hex();
}

// All that isn't `keep` or its predecessor goes, unfinished folders included.
void remove_old(const fs::path& folder, const std::string& keep) {
  std::set<std::string> complete;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".tmp")) {
      unfinished.push_back(entry.path());
    } else {
      complete.insert(name);
    }
  }
  std::error_code ignored;  // a leftover costs space, not correctness
  for (const fs::path& path : unfinished) fs::remove_all(path, ignored);
  const auto newest = complete.find(keep);
  if (newest == complete.end()) return;
  for (auto it = complete.begin(); it != complete.end(); ++it) {
    if (it == newest || std::next(it) == newest) continue;
    fs::remove_all(folder / *it, ignored);
  }
}

// The lines in which two recipe texts differ, as "depth = 6 (here 4)".
std::string first_difference(const std::string& saved, const std::string& here) {
  std::istringstream a(saved), b(here);
  std::string line_a, line_b, section;
  while (std::getline(a, line_a) && std::getline(b, line_b)) {
    if (line_a.starts_with('[')) section = line_a + " ";
    if (line_a != line_b) return fmt::format("{}{} there, {} here", section, line_a, line_b);
  }
  return "one has more lines than the other";
}

nlohmann::json read_state(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "state.json";
  try {
    nlohmann::json state = nlohmann::json::parse(read_file(path));
    if (state.at("version").get<int>() != kVersion) {
      throw InputError(path.string(), fmt::format("has version {}, this program reads {}",
                                                  state.at("version").dump(), kVersion));
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path.string(), std::string("is damaged: ") + error.what());
  }
}

}  // namespace

std::string save_checkpoint(FileSystem& files, const fs::path& run, std::int64_t step,
                            const graph::Variables& variables, graph::Backend& backend,
                            nlohmann::json state) {
  const fs::path folder = run / "checkpoints";
  const std::string name = fmt::format("{:06}", step);
  const fs::path aside = folder / (name + ".tmp");
  fs::create_directories(folder);
  fs::remove_all(aside);
  fs::create_directory(aside);
  const std::string hash = content_hash(variables, backend);
  state["version"] = kVersion;
  state["step"] = step;
  state["hash"] = hash;
  const std::map<std::string, std::string> metadata = {{"format", "headway"}, {"step", std::to_string(step)}};
  write_safetensors(files, aside / "model.safetensors", tensors(variables, backend, graph::Role::parameter),
                    metadata);
  write_safetensors(files, aside / "optim.safetensors", tensors(variables, backend, graph::Role::state),
                    metadata);
  files.write_atomically(aside / "state.json", state.dump(1) + "\n");
  if (fs::exists(folder / name)) fs::remove_all(folder / name);
  files.rename(aside, folder / name);
  files.write_atomically(folder / "latest", name + "\n");
  remove_old(folder, name);
  return hash;
}

std::optional<fs::path> latest_checkpoint(const fs::path& run) {
  const fs::path latest = run / "checkpoints" / "latest";
  if (!fs::exists(latest)) return std::nullopt;
  std::string name = read_file(latest);
  name.erase(name.find_last_not_of(" \n") + 1);
  const fs::path checkpoint = run / "checkpoints" / name;
  if (!fs::exists(checkpoint / "state.json")) {
    throw InputError(latest.string(), "names checkpoint " + name + ", which isn't there");
  }
  return checkpoint;
}

nlohmann::json load_checkpoint(const fs::path& checkpoint, const graph::Variables& variables,
                               graph::Backend& backend, bool optimizer, const nlohmann::json& identity) {
  nlohmann::json state = read_state(checkpoint);
  for (const auto& [key, here] : identity.items()) {
    const nlohmann::json& saved = state.at("identity").at(key);
    if (saved == here) continue;
    const std::string difference = saved.is_string() && here.is_string() && key == "recipe"
                                       ? first_difference(saved.get<std::string>(), here.get<std::string>())
                                       : fmt::format("{} there, {} here", saved.dump(), here.dump());
    throw InputError(checkpoint.string(), fmt::format("belongs to another {}: {}", key, difference),
                     "Use the run's own, or start a new run");
  }
  const auto load = [&](const char* file, graph::Role role) {
    const Safetensors saved(checkpoint / file);
    for (int i : variables.with(role)) {
      saved.copy(variables[i].name, backend.stored_as(i), variables[i].type.shape, backend.storage(i));
    }
  };
  load("model.safetensors", graph::Role::parameter);
  if (optimizer) {
    load("optim.safetensors", graph::Role::state);
    if (content_hash(variables, backend) != state.at("hash").get<std::string>()) {
      throw InputError(checkpoint.string(), "its tensors don't have the hash that state.json gives",
                       "The checkpoint is damaged");
    }
  }
  return state;
}

}  // namespace headway::train
