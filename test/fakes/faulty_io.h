#pragma once

// Returns once no rule makes a call on the path hang, as openat(2) names it; a null or empty name is `directory`
// itself.
void delay_by_rules(int directory, const char* name);
