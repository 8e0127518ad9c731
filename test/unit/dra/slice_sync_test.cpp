#include "plugin/dra/slices/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/dra/slices/pool.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::json;

const PoolIdentity kIdentity{"neuron.aws.com", "n1", {"n1", "uid-of-n1"}};

std::vector<SliceContent> wanted_of(const TestNode& node) {
  return lay_out(node.pool(), {}).slices;
}

// An obedient server: applies a plan to what is stored.
struct Stored {
  std::vector<Slice> slices;
  int version = 100;

  void apply(const SyncPlan& plan) {
    for (const Slice& gone : plan.deletes) {
      ASSERT_EQ(std::erase_if(slices, [&](const Slice& s) { return s.name == gone.name && s.uid == gone.uid; }), 1U);
    }
    for (const Slice& update : plan.updates) {
      const auto at = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) { return s.name == update.name; });
      ASSERT_NE(at, slices.end());
      ASSERT_EQ(at->resource_version, update.resource_version);
      *at = update;
      set_version(*at);
    }
    for (Slice made : plan.creates) {
      ASSERT_EQ(made.uid, "");
      ASSERT_EQ(made.resource_version, "");
      for (const Slice& slice : slices) ASSERT_NE(slice.name, made.name);
      set_version(made);
      made.uid = "uid-" + made.resource_version;
      made.json["metadata"]["uid"] = made.uid;
      slices.push_back(std::move(made));
    }
    for (Slice& slice : slices) add_times(slice);
  }
  void set_version(Slice& slice) {
    slice.resource_version = std::to_string(++version);
    slice.json["metadata"]["resourceVersion"] = slice.resource_version;
  }
  void add_times(Slice& slice) {
    for (Json& device : slice.json["spec"]["devices"]) {
      for (Json& taint : device["taints"]) {
        if (!taint.contains("timeAdded")) taint["timeAdded"] = "2026-01-01T00:00:" + std::to_string(version) + "Z";
      }
      if (device["taints"].empty()) device.erase("taints");
    }
    if (slice.json["spec"]["devices"].empty()) slice.json["spec"].erase("devices");
  }
  // A scheduler takes the pool: one generation, as many slices as each of them says.
  void expect_whole(const std::vector<SliceContent>& wanted) const {
    ASSERT_EQ(slices.size(), wanted.size());
    for (const Slice& slice : slices) {
      EXPECT_EQ(generation_of(slice), generation_of(slices.front()));
      EXPECT_EQ(slice.json["spec"]["pool"]["resourceSliceCount"], slices.size());
    }
    EXPECT_TRUE(plan_sync(slices, wanted, kIdentity).empty()) << "a second plan writes nothing";
  }
};

TEST(SliceSync, PublishesAPoolOnceAndThenNothing) {
  const auto wanted = wanted_of(TestNode("trn2.48xlarge"));
  Stored stored;
  const SyncPlan plan = plan_sync({}, wanted, kIdentity);
  EXPECT_THAT(plan.creates, SizeIs(3));
  EXPECT_EQ(plan.creates[0].name, "00000-neuron.aws.com-n1");
  EXPECT_EQ(plan.creates[2].name, "00002-neuron.aws.com-n1");
  EXPECT_EQ(generation_of(plan.creates[0]), 1);
  EXPECT_EQ(plan.creates[0].json["spec"]["pool"]["resourceSliceCount"], 3);
  stored.apply(plan);
  stored.expect_whole(wanted);
}

TEST(SliceSync, OneChangedSliceKeepsTheGeneration) {
  TestNode node("trn1.32xlarge");
  Stored stored;
  stored.apply(plan_sync({}, wanted_of(node), kIdentity));
  node.make_ill(3);
  const SyncPlan plan = plan_sync(stored.slices, wanted_of(node), kIdentity);
  EXPECT_THAT(plan.updates, SizeIs(1)) << "device, cores, groups and taints are one write";
  EXPECT_EQ(generation_of(plan.updates.at(0)), 1);
  EXPECT_THAT(plan.creates, IsEmpty());
  EXPECT_THAT(plan.deletes, IsEmpty());
  stored.apply(plan);
  stored.expect_whole(wanted_of(node));
}

TEST(SliceSync, TwoChangedSlicesRaiseTheGenerationOfAll) {
  TestNode node("trn2.48xlarge");
  Stored stored;
  stored.apply(plan_sync({}, wanted_of(node), kIdentity));
  node.make_ill(3);
  const SyncPlan plan = plan_sync(stored.slices, wanted_of(node), kIdentity);
  EXPECT_THAT(plan.updates, SizeIs(3));
  for (const Slice& slice : plan.updates) EXPECT_EQ(generation_of(slice), 2);
  stored.apply(plan);
  stored.expect_whole(wanted_of(node));
}

TEST(SliceSync, AMissingSliceRaisesTheGeneration) {
  const auto wanted = wanted_of(TestNode("trn2.48xlarge"));
  Stored stored;
  stored.apply(plan_sync({}, wanted, kIdentity));
  stored.slices.erase(stored.slices.begin() + 1);
  const SyncPlan plan = plan_sync(stored.slices, wanted, kIdentity);
  EXPECT_THAT(plan.updates, SizeIs(2));
  EXPECT_THAT(plan.creates, SizeIs(1));
  EXPECT_EQ(generation_of(plan.creates.at(0)), 2);
  stored.apply(plan);
  stored.expect_whole(wanted);
}

TEST(SliceSync, FewerSlicesDeleteTheRest) {
  Stored stored;
  stored.apply(plan_sync({}, wanted_of(TestNode("trn2.48xlarge")), kIdentity));
  const auto wanted = wanted_of(TestNode("inf2.xlarge"));
  const SyncPlan plan = plan_sync(stored.slices, wanted, kIdentity);
  EXPECT_THAT(plan.deletes, SizeIs(1));
  stored.apply(plan);
  stored.expect_whole(wanted);
  stored.apply(plan_sync(stored.slices, {}, kIdentity));
  EXPECT_THAT(stored.slices, IsEmpty()) << "a node without hardware has no slices";
}

// AWS's driver publishes under the same name, one slice with a name that the server made.
TEST(SliceSync, SlicesOfAnotherDriverOfThisNameGo) {
  const auto wanted = wanted_of(TestNode("trn1.32xlarge"));
  Stored stored;
  Slice foreign;
  foreign.name = "n1-neuron.aws.cx7k2d";
  foreign.uid = "uid-7";
  foreign.json["spec"] = {{"driver", kIdentity.driver},
                          {"nodeName", "n1"},
                          {"pool", {{"name", "n1"}, {"generation", 5}, {"resourceSliceCount", 1}}}};
  stored.slices.push_back(foreign);
  const SyncPlan plan = plan_sync(stored.slices, wanted, kIdentity);
  EXPECT_THAT(plan.deletes, SizeIs(1));
  EXPECT_EQ(generation_of(plan.creates.at(0)), 6) << "above what schedulers may still have in mind";
  stored.apply(plan);
  stored.expect_whole(wanted);
}

TEST(SliceSync, AnotherPoolsNameMeansAnotherObject) {
  const auto wanted = wanted_of(TestNode("inf2.xlarge"));
  Stored stored;
  stored.apply(plan_sync({}, wanted, {"neuron.aws.com", "other", {"n1", "uid-of-n1"}}));
  const SyncPlan plan = plan_sync(stored.slices, wanted, kIdentity);
  EXPECT_THAT(plan.deletes, SizeIs(2)) << "the name of a pool cannot be changed";
  EXPECT_THAT(plan.creates, SizeIs(2));
  stored.apply(plan);
  stored.expect_whole(wanted);
}

TEST(SliceSync, SlicesOfANodeThatWasMadeAnewGetItsUid) {
  const auto wanted = wanted_of(TestNode("trn1.32xlarge"));
  Stored stored;
  stored.apply(plan_sync({}, wanted, {"neuron.aws.com", "n1", {"n1", "an-older-uid"}}));
  const SyncPlan plan = plan_sync(stored.slices, wanted, kIdentity);
  ASSERT_THAT(plan.updates, SizeIs(2)) << "or the garbage collector takes them";
  EXPECT_EQ(plan.updates[0].json["metadata"]["ownerReferences"][0]["uid"], "uid-of-n1");
  stored.apply(plan);
  stored.expect_whole(wanted);
}

TEST(SliceSync, WhatIsNotOursIsWrittenOver) {
  const auto wanted = wanted_of(TestNode("inf2.xlarge"));
  Stored stored;
  stored.apply(plan_sync({}, wanted, kIdentity));
  stored.slices[1].json["spec"]["allNodes"] = true;
  EXPECT_THAT(plan_sync(stored.slices, wanted, kIdentity).updates, SizeIs(1));
}

TEST(SliceSync, TaintsKeepTheTimeAtWhichTheyWereAdded) {
  TestNode node("trn1.32xlarge");
  node.make_ill(3);
  Stored stored;
  stored.apply(plan_sync({}, wanted_of(node), kIdentity));
  node.make_ill(5);
  const SyncPlan plan = plan_sync(stored.slices, wanted_of(node), kIdentity);
  ASSERT_THAT(plan.updates, SizeIs(1));
  for (const Json& device : plan.updates[0].json["spec"]["devices"]) {
    const bool is_old = device["name"] == "neuron-device-3", is_new = device["name"] == "neuron-device-5";
    if (!is_old && !is_new) continue;
    EXPECT_NE(device["taints"].at(0).contains("timeAdded"), is_new) << device["name"];
  }
}

// Any half of the writes may be all that happened, and the next plan makes it whole.
TEST(SliceSync, EveryInterruptedSyncIsMadeWhole) {
  TestNode node("trn2.48xlarge");
  Stored begin;
  begin.apply(plan_sync({}, wanted_of(node), kIdentity));
  begin.slices.pop_back();
  Slice foreign = begin.slices[0];
  foreign.name = "x";
  foreign.uid = "uid-x";
  begin.slices.push_back(foreign);
  node.make_ill(3);
  const auto wanted = wanted_of(node);
  const SyncPlan plan = plan_sync(begin.slices, wanted, kIdentity);
  const std::size_t writes = plan.deletes.size() + plan.updates.size() + plan.creates.size();
  for (std::size_t done = 0; done <= writes; ++done) {
    SyncPlan part;
    std::size_t left = done;
    const auto take = [&](const std::vector<Slice>& from, std::vector<Slice>& to) {
      for (const Slice& slice : from) {
        if (left == 0) return;
        to.push_back(slice);
        --left;
      }
    };
    take(plan.deletes, part.deletes);
    take(plan.updates, part.updates);
    take(plan.creates, part.creates);
    Stored stored = begin;
    stored.apply(part);
    stored.apply(plan_sync(stored.slices, wanted, kIdentity));
    stored.expect_whole(wanted);
  }
}

TEST(SliceSync, NamesSortAsTheSlicesAndFitTheServer) {
  EXPECT_EQ(slice_name(0, kIdentity), "00000-neuron.aws.com-n1");
  EXPECT_EQ(slice_name(26, kIdentity), "0001a-neuron.aws.com-n1");
  const PoolIdentity long_one{std::string(63, 'd'), "p", {std::string(253, 'n'), ""}};
  const PoolIdentity other{std::string(63, 'd'), "p", {std::string(252, 'n') + "m", ""}};
  EXPECT_LE(slice_name(3, long_one).size(), 253U);
  EXPECT_NE(slice_name(3, long_one), slice_name(3, other));
  EXPECT_TRUE(slice_name(3, long_one).starts_with("00003-"));
}

// Names with a salt sort in the same way, and the policy of manifests/overlays/dra knows where digests begin.
TEST(SliceSync, SaltedNamesAreFoundAgain) {
  PoolIdentity salted = kIdentity;
  salted.salt = "7f0c1d22";
  EXPECT_EQ(slice_name(26, salted), "0001a7f0c1d22-neuron.aws.com-n1");
  EXPECT_LT(slice_name(1, salted), slice_name(2, salted));
  const auto bytes = [](std::size_t letters, const std::string& salt) {
    return slice_name(0, {"neuron.aws.com", "p", {std::string(letters, 'n'), ""}, salt}).size();
  };
  EXPECT_EQ(bytes(224, ""), 245U);
  EXPECT_EQ(bytes(224, "7f0c1d22"), 253U);
  EXPECT_EQ(bytes(225, ""), 23U);

  Stored stored;
  const auto wanted = wanted_of(TestNode("trn1.32xlarge"));
  stored.apply(plan_sync({}, wanted, kIdentity));
  EXPECT_EQ(salt_in_use(stored.slices, kIdentity), "");
  stored.apply(plan_sync(stored.slices, wanted, salted));
  ASSERT_THAT(stored.slices, SizeIs(2)) << "the names without salt are gone";
  EXPECT_EQ(salt_in_use(stored.slices, kIdentity), "7f0c1d22");
  EXPECT_TRUE(plan_sync(stored.slices, wanted, salted).empty());
  for (const char* name : {"000007f0c1d2-neuron.aws.com-n1", "000007f0c1d2g-neuron.aws.com-n1",
                           "000000000000a-neuron.aws.com-n2", "n1-neuron.aws.cx7k2d", "000000000000a", ""}) {
    stored.slices[0].name = name;
    EXPECT_EQ(salt_in_use(stored.slices, kIdentity), "7f0c1d22") << name;
  }
  stored.slices[0].name = "000000000000a-neuron.aws.com-n1";
  EXPECT_EQ(salt_in_use(stored.slices, kIdentity), "0000000a") << "of two instances' the least";
  stored.slices[0].json["spec"]["pool"]["name"] = "other";
  EXPECT_EQ(salt_in_use(stored.slices, kIdentity), "7f0c1d22");
}

}  // namespace
}  // namespace neuron::plugin::dra
