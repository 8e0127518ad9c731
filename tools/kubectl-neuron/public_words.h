#pragma once

#include <string>
#include <string_view>

// Foreign text that an anonymised dump may keep. Pure.
namespace neuron::fleet {

inline constexpr std::string_view kWordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

// Words of the messages that `why` knows and of the sentences of this program, and short numbers.
[[nodiscard]] bool is_public_word(std::string_view word);
// "kubernetes.io/arch": a key or resource whose domain is of Kubernetes, AWS or this project.
[[nodiscard]] bool is_public_key(std::string_view key);
[[nodiscard]] bool is_public_domain(std::string_view domain);
// Of labels of Kubernetes and AWS those whose values say nothing of the owner either.
[[nodiscard]] bool is_public_value(std::string_view key, std::string_view value);
// In CEL: every quoted text is a domain as above or a value that the project's driver publishes.
[[nodiscard]] bool is_public_expression(std::string_view text);
// The device classes of the chart.
[[nodiscard]] bool is_public_class(std::string_view name);
// "localhost/neuron-agent:1.2.0" -> "neuron-agent:1.2.0"; a tag that is no version goes too.
[[nodiscard]] std::string public_image(std::string_view image);

}  // namespace neuron::fleet
