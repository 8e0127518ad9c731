// kill -9 at every step of preparing, releasing and repairing that changes a file: what is found afterwards is whole,
// the next call puts right what is missing, and claims of others are as they were.

#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/dra/claims_fixture.h"
#include "test/unit/dra/kill_at.h"

namespace neuron::plugin::dra {
namespace {

// A node with one claim prepared, `other`, and one that is not, `a`.
class Node : public ClaimsTest {
 public:
  Node() {
    SetUp();
    put_claim("other", {{"chips", "neuron-device-1"}});
    put_claim("a", {{"chips", "neuron-device-2"}, {"nics", "efa-" + node_->efa(0).name}});
    put_claim("rival", {{"chips", "neuron-group-0-3"}});
    EXPECT_EQ(prepare("other").error, "");
    other_ = state_of("other");
  }
  void TestBody() override {}

  using ClaimsTest::cdi;
  using ClaimsTest::cdi_file;
  using ClaimsTest::directory;
  using ClaimsTest::prepare;
  using ClaimsTest::put_claim;
  using ClaimsTest::restart;
  using ClaimsTest::unprepare;

  // Entry and CDI file of a claim; "" = neither.
  [[nodiscard]] std::string state_of(const std::string& name) {
    const auto view = agent_->store.view();
    EXPECT_TRUE(view) << view.error().message;
    const auto found = view->records.find(uid_of(name));
    const std::string file = read_text(cdi_file(uid_of(name)));
    if (found == view->records.end()) return file;
    return to_text(*found->second) + file;
  }
  [[nodiscard]] std::string repair() {
    const auto repaired = agent_->store.repair();
    return repaired ? "" : repaired.error().message;
  }
  void expect_others_as_they_were() {
    EXPECT_EQ(state_of("other"), other_);
    EXPECT_TRUE(ends_with_only({".json", ".lock", ".damaged", ".spare"}, directory()));
  }

 private:
  static bool ends_with_only(const std::vector<std::string>& endings, const std::string& path) {
    for (const std::string& name : names_in(path)) {
      if (name == "claims.json.new") continue;  // half a file, which nobody reads and the next change writes over
      if (std::none_of(endings.begin(), endings.end(), [&](const auto& ending) { return name.ends_with(ending); })) {
        return false;
      }
    }
    return true;
  }
  std::string other_;
};

using Step = std::function<void(Node&)>;

// Runs `work` in a child that is killed at its n-th change of a file; false: it has fewer.
bool run_killed(Node& node, const Step& work, int n, KillAt at) {
  const pid_t child = ::fork();
  if (child == 0) {
    spdlog::set_level(spdlog::level::off);
    node.restart();
    kill_at(n, at);
    work(node);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kKilled) << WEXITSTATUS(status);
  return WEXITSTATUS(status) == kKilled;
}

// For every step of `work`, and every place in it: `begin` makes the state, `check` looks at what is left. How many.
int for_each_step(const Step& begin, const Step& work, const Step& check) {
  spdlog::set_level(spdlog::level::off);
  int steps = 0;
  for (const KillAt at : {KillAt::before, KillAt::half_way, KillAt::after}) {
    for (int n = 1; n < 100; ++n) {
      Node node;
      begin(node);
      if (!run_killed(node, work, n, at)) break;
      ++steps;
      SCOPED_TRACE("killed at step " + std::to_string(n) + " place " + std::to_string(static_cast<int>(at)));
      node.restart();
      check(node);
      node.expect_others_as_they_were();
      if (testing::Test::HasFailure()) return steps;
    }
  }
  spdlog::set_level(spdlog::level::info);
  return steps;
}

const Step kNothing = [](Node&) {};
const Step kPrepare = [](Node& node) { EXPECT_EQ(node.prepare("a").error, ""); };
const Step kRelease = [](Node& node) { EXPECT_EQ(node.unprepare("a"), ""); };

std::string prepared_state() {
  Node node;
  kPrepare(node);
  return node.state_of("a");
}

TEST(ClaimsKill, PrepareThatIsCalledAgainFinishes) {
  const std::string whole = prepared_state();
  const int steps = for_each_step(kNothing, kPrepare, [&](Node& node) {
    const PrepareAnswer answer = node.prepare("a");
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(answer.devices.size(), 2U);
    EXPECT_EQ(node.state_of("a"), whole);
    kRelease(node);
    EXPECT_EQ(node.state_of("a"), "");
  });
  EXPECT_GE(steps, 3 * 9);  // three files, each opened, written and renamed, and the locks
}

TEST(ClaimsKill, AStartAfterPrepareFindsAllOrNothing) {
  const std::string whole = prepared_state();
  int prepared = 0;
  const int steps = for_each_step(kNothing, kPrepare, [&](Node& node) {
    EXPECT_EQ(node.repair(), "");
    const std::string state = node.state_of("a");
    EXPECT_TRUE(state.empty() || state == whole) << state;
    prepared += state.empty() ? 0 : 1;
    // What was not prepared to its end holds nothing.
    kRelease(node);
    EXPECT_EQ(node.state_of("a"), "");
  });
  EXPECT_GT(prepared, 0);
  EXPECT_LT(prepared, steps);
}

TEST(ClaimsKill, PrepareThatIsGivenUpIsReleased) {
  (void)for_each_step(kNothing, kPrepare, [&](Node& node) {
    kRelease(node);
    EXPECT_EQ(node.state_of("a"), "");
    EXPECT_EQ(node.repair(), "");
    EXPECT_EQ(names_in(node.cdi()).size(), 1U);
  });
}

TEST(ClaimsKill, PreparingAgainAfterTheFilesWereLostFinishes) {
  const std::string whole = prepared_state();
  (void)for_each_step(
      [](Node& node) {
        kPrepare(node);
        std::filesystem::remove(node.cdi_file("uid-a"));
      },
      kPrepare,
      [&](Node& node) {
        EXPECT_EQ(node.prepare("a").error, "");
        EXPECT_EQ(node.state_of("a"), whole);
      });
}

// Its pod may run: until the new state is whole, the old one is what is held and what containers are made of.
TEST(ClaimsKill, PreparingACompletedClaimAnewNeverForgetsIt) {
  const Step change = [](Node& node) { node.put_claim("a", {{"chips", "neuron-device-3"}}); };
  const std::string before = prepared_state();
  Node changed;
  kPrepare(changed);
  change(changed);
  kPrepare(changed);
  const std::string after = changed.state_of("a");
  ASSERT_NE(before, after);
  const int steps = for_each_step(
      [&](Node& node) {
        kPrepare(node);
        change(node);
      },
      kPrepare,
      [&](Node& node) {
        EXPECT_EQ(node.repair(), "");
        const std::string state = node.state_of("a");
        EXPECT_TRUE(state == before || state == after) << state;
        EXPECT_EQ(node.prepare("rival").reason, "held_by_claim");
        kPrepare(node);
        EXPECT_EQ(node.state_of("a"), after);
      });
  EXPECT_GE(steps, 3 * 6);
}

TEST(ClaimsKill, ReleaseThatIsCalledAgainFinishes) {
  const int steps = for_each_step(kPrepare, kRelease, [&](Node& node) {
    kRelease(node);
    EXPECT_EQ(node.state_of("a"), "");
    kPrepare(node);  // the next pod
  });
  EXPECT_GE(steps, 3 * 4);
}

TEST(ClaimsKill, AStartAfterReleaseFindsAllOrNothing) {
  const std::string whole = prepared_state();
  (void)for_each_step(kPrepare, kRelease, [&](Node& node) {
    EXPECT_EQ(node.repair(), "");
    const std::string state = node.state_of("a");
    EXPECT_TRUE(state.empty() || state == whole) << state;
    EXPECT_EQ(node.prepare("a").error, "");  // or it is prepared again, by another pod
    EXPECT_EQ(node.state_of("a"), whole);
  });
}

TEST(ClaimsKill, ARepairThatIsDoneAgainFinishes) {
  const std::string whole = prepared_state();
  const int steps = for_each_step(
      [](Node& node) {
        kPrepare(node);
        std::filesystem::remove(node.cdi_file("uid-a"));
        write_text(node.cdi_file("uid-gone"), "{}");
      },
      [](Node& node) { EXPECT_EQ(node.repair(), ""); },
      [&](Node& node) {
        EXPECT_EQ(node.repair(), "");
        EXPECT_EQ(node.state_of("a"), whole);
        EXPECT_EQ(names_in(node.cdi()).size(), 2U);
      });
  EXPECT_GE(steps, 3 * 4);
}

// Pods end on a node whose disk is full, and that is when they are evicted; nothing is prepared there meanwhile.
TEST(ClaimsKill, OnAFullDiskWhatIsPreparedCanBeReleased) {
  Node node;
  kPrepare(node);
  fill_disk(true);
  node.restart();
  EXPECT_EQ(node.prepare("rival").reason, "held_by_claim");
  EXPECT_EQ(node.unprepare("never known"), "");
  EXPECT_EQ(node.unprepare("a"), "");
  EXPECT_EQ(node.state_of("a"), "");
  node.expect_others_as_they_were();
  EXPECT_THAT(node.prepare("a").error, testing::HasSubstr("No space left on device"));
  EXPECT_EQ(node.unprepare("a"), "");
  EXPECT_EQ(node.unprepare("other"), "");
  fill_disk(false);
  kPrepare(node);
}

// What was begun while there was room: also where the disk is full of others' files by then, and what comes after it.
TEST(ClaimsKill, OnADiskThatFillsMeanwhileAnEntryIsCompletedAndReleased) {
  Node node;
  const auto boot = [] { return std::vector<ClaimRecord>(); };
  RecordFile file(node.directory() + "/claims.json", "boot-1", boot);
  ASSERT_TRUE(file.read());
  ClaimRecord claim = *file.records().at("uid-other");
  for (int i = 0; i < 3; ++i) {
    claim.uid = "uid-" + std::to_string(i);
    claim.is_completed = false;
    ASSERT_TRUE(file.put(claim));
    fill_disk(true);
    claim.is_completed = true;
    const auto completed = file.put(claim);
    EXPECT_TRUE(completed) << completed.error().message;
    ASSERT_TRUE(file.release("uid-0"));
    fill_disk(false);
  }
  RecordFile again(node.directory() + "/claims.json", "boot-1", boot);
  ASSERT_TRUE(again.read());
  EXPECT_EQ(again.records().size(), 3U);
  fill_disk(true);
  for (const auto& [uid, one] : ClaimRecords(again.records())) {
    EXPECT_TRUE(one->is_completed);
    EXPECT_TRUE(again.release(uid)) << uid;
  }
  fill_disk(false);
}

TEST(ClaimsKill, AReleaseOnAFullDiskThatIsCalledAgainFinishes) {
  const int steps = for_each_step(
      kPrepare,
      [](Node& node) {
        fill_disk(true);
        kRelease(node);
      },
      [](Node& node) {
        kRelease(node);
        EXPECT_EQ(node.state_of("a"), "");
        kPrepare(node);
      });
  EXPECT_GE(steps, 3 * 5);
}

// Setting a damaged file aside and making it anew.
TEST(ClaimsKill, ADamagedFileIsMadeAnewAllTheSame) {
  for (const bool is_rebuilt_claim_asked_for : {false, true}) {
    Node node;
    kPrepare(node);
    for (int n = 1; n < 100; ++n) {
      write_text(node.directory() + "/claims.json", "{");
      if (!run_killed(
              node, [](Node& child) { EXPECT_EQ(child.repair(), ""); }, n, KillAt::after))
        break;
      node.restart();
      EXPECT_EQ(node.repair(), "");
      EXPECT_EQ(node.prepare("rival").reason, "held_by_claim");  // held all the same
      if (is_rebuilt_claim_asked_for) {
        kPrepare(node);
        EXPECT_EQ(node.prepare("rival").reason, "held_by_claim");
      }
    }
    kRelease(node);
    EXPECT_EQ(node.unprepare("other"), "");
    EXPECT_EQ(node.prepare("rival").error, "");
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
