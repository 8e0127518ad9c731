#pragma once

// The input of a terminal for a key.
namespace neuron::screen {

enum class KeyCode {
  character,
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  enter,
  escape,
  backspace,
  tab,
  none
};

struct Key {
  KeyCode code = KeyCode::none;
  char character = 0;  // of KeyCode::character, printable ASCII
};

}  // namespace neuron::screen
