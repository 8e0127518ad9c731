#include "agent/host/driver_query.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/host/temp_tree.h"

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGood = R"({ "bdf": "0000:10:1b.0",
  "apps": [ { "pid": 4290, "nc_lock_map": 3, "host_mem_bytes": 16384, "device_mem_bytes": 1782579 } ],
  "logical_to_physical": [0, 1], "future": {"a": [1]} })";

DriverAnswers parse(std::string_view text) {
  return parse_recorded_answers(text, "p.json");
}

TEST(RecordedAnswers, AreRead) {
  const DriverAnswers answers = parse(kGood);
  EXPECT_EQ(model::to_string(answers.bdf.value()), "0000:10:1b.0");
  EXPECT_THAT(answers.processes.value(), ElementsAre(model::Process{4290, 3, 16384, 1782579}));
  EXPECT_THAT(answers.logical_to_physical.value(), ElementsAre(0, 1));
  EXPECT_THAT(answers.problems, IsEmpty());
}

TEST(RecordedAnswers, MissingKeysAreUnanswered) {
  const DriverAnswers answers = parse(R"({"apps": [], "bdf": null})");
  EXPECT_EQ(answers.bdf, std::nullopt);
  EXPECT_THAT(answers.processes.value(), IsEmpty());
  EXPECT_EQ(answers.logical_to_physical, std::nullopt);
  EXPECT_THAT(answers.problems, IsEmpty());
}

TEST(RecordedAnswers, EveryTruncationIsSurvived) {
  const std::string text = kGood;
  for (std::size_t length = 0; length < text.size() - 1; ++length) {
    const DriverAnswers answers = parse(std::string_view(text).substr(0, length));
    EXPECT_EQ(answers.bdf, std::nullopt) << length;
    EXPECT_THAT(answers.problems, SizeIs(1)) << length;
  }
}

TEST(RecordedAnswers, WrongTypesLoseOnlyTheirKey) {
  const DriverAnswers answers = parse(R"({"bdf": 7, "apps": {"pid": 1}, "logical_to_physical": [1, 0]})");
  EXPECT_EQ(answers.bdf, std::nullopt);
  EXPECT_EQ(answers.processes, std::nullopt);
  EXPECT_THAT(answers.logical_to_physical.value(), ElementsAre(1, 0));
  EXPECT_THAT(answers.problems, SizeIs(2));
  EXPECT_THAT(sentence(answers.problems[0]), HasSubstr("p.json: \"bdf\""));
  for (const char* text :
       {"[]", "7", "null", "\"x\"", "{\"bdf\": \"0000:10:1b.9\"}", "{\"logical_to_physical\": [0, 0]}",
        "{\"logical_to_physical\": [0.5]}", "{\"logical_to_physical\": []}", "{\"apps\": [7]}"}) {
    EXPECT_THAT(parse(text).problems, SizeIs(1)) << text;
  }
}

TEST(RecordedAnswers, ImpossibleNumbersAreRefused) {
  for (const char* pid :
       {"18446744073709551616", "18446744073709551615", "2147483648", "0", "-1", "1.5", "1e3", "\"1\"", "true"}) {
    const DriverAnswers answers = parse(std::string("{\"apps\": [{\"pid\": ") + pid + "}]}");
    EXPECT_EQ(answers.processes, std::nullopt) << pid;
    EXPECT_THAT(answers.problems, SizeIs(1)) << pid;
  }
  EXPECT_EQ(parse(R"({"apps": [{"pid": 1, "nc_lock_map": 256}]})").processes, std::nullopt);
  EXPECT_EQ(parse(R"({"apps": [{"pid": 1, "device_mem_bytes": 18446744073709551615}]})")
                .processes->front()
                .device_memory_bytes,
            18446744073709551615U);
}

TEST(RecordedAnswers, DeepNestingIsRefused) {
  EXPECT_THAT(sentences(parse(std::string(100'000, '[')).problems), ElementsAre(HasSubstr("nested too deeply")));
  std::string closed = "{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(parse(closed).problems, SizeIs(1));
  EXPECT_THAT(parse(R"({"x": "[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[[[[", "logical_to_physical": [0]})").problems, IsEmpty());
}

TEST(DriverQuery, ReadsTheFileOfTheDevice) {
  TempTree tree;
  tree.write("neuron-ioctl/neuron3.json", kGood);
  EXPECT_EQ(model::to_string(query_driver(tree.root(), 3).bdf.value()), "0000:10:1b.0");
  EXPECT_EQ(query_driver(tree.root(), 4), DriverAnswers{});
}

TEST(DriverQuery, BadFilesAreProblems) {
  TempTree tree;
  tree.write("neuron-ioctl/neuron0.json", std::string((1 << 20) + 1, ' '));
  tree.folder("neuron-ioctl/neuron1.json");
  tree.fifo("neuron-ioctl/neuron2.json");
  for (int index = 0; index < 3; ++index) EXPECT_THAT(query_driver(tree.root(), index).problems, SizeIs(1)) << index;
}

TEST(DriverQuery, LiveMachineWithoutTheNodeIsUnanswered) {
  EXPECT_EQ(query_driver(*FsRoot::open("/"), 9876), DriverAnswers{});
}

TEST(LiveAnswers, BdfIsDecoded) {
  const std::array<std::uint8_t, kBdfAnswerBytes> answer = {0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0, 0, 0, 0x1f, 7, 0, 0};
  EXPECT_EQ(decode_bdf_answer(answer), (model::Bdf{0, 0xcc, 0x1f, 7}));
  std::array<std::uint8_t, kBdfAnswerBytes> unanswered{};
  unanswered.fill(0xff);
  EXPECT_EQ(decode_bdf_answer(unanswered), std::nullopt);
}

TEST(LiveAnswers, CoreMapIsThePartOfTheDevice) {
  const std::vector<std::uint32_t> words = {4, 0, 1, 0, 0, 1, 1, 1, 0};
  EXPECT_THAT(decode_core_map(words, 1).value(), ElementsAre(1, 0));
  EXPECT_EQ(decode_core_map(words, 2), std::nullopt);
  EXPECT_EQ(decode_core_map(std::vector<std::uint32_t>{5, 0, 1}, 0), std::nullopt);
  EXPECT_EQ(decode_core_map(std::vector<std::uint32_t>{0xffffffff, 0, 1}, 0), std::nullopt);
  EXPECT_EQ(decode_core_map(std::vector<std::uint32_t>{2, 0, 1, 0, 1}, 0), std::nullopt);
  EXPECT_EQ(decode_core_map({}, 0), std::nullopt);
}

TEST(LiveAnswers, WhatIsNoDriverRefuses) {
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(ask_driver(null.get(), 0), DriverAnswers{});
}

}  // namespace
}  // namespace neuron::host
