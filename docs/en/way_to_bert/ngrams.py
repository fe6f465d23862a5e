# %% [markdown]
# # n-grams: counting
#
# A **language model** gives every sentence a probability, one word at a time:
#
# $$P(w_1 \dots w_n) = \prod_i P(w_i \mid w_1 \dots w_{i-1})$$
#
# Most sentences occur only once, so the whole history of a word cannot be counted. An n-gram model
# looks at the last $n - 1$ words only: $P(w_i \mid w_{i-2}, w_{i-1}) \approx c(w_{i-2} w_{i-1} w_i) / c(w_{i-2} w_{i-1})$
# for $n = 3$. It has no gradients and no layers. It is a table of counts.
#
# ## The text
#
# The text is ten stories of Sherlock Holmes. The first nine tenths are for training, the last tenth is
# for measuring. Words that occur fewer than three times in the training part become `<unk>`. All
# chapters use this split, so you can compare their figures.

# %%
import collections
import gzip
import math
import random
import re

import matplotlib.pyplot as plt

with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[a-z]+(?:'[a-z]+)?|[.,;!?]", file.read().lower())
end = len(words) * 9 // 10
frequent = {word for word, n in collections.Counter(words[:end]).items() if n >= 3}
words = [word if word in frequent else "<unk>" for word in words]
train, test = words[:end], words[end:]
size = len(frequent) + 1
print(f"{len(train):,} words to count, {len(test):,} to measure on, {size:,} different ones")

# %% [markdown]
# ## Counting


# %%
def grams(words, n):
    return zip(*(words[i:] for i in range(n)), strict=False)


counts = {n: collections.Counter(grams(train, n)) for n in (1, 2, 3)}
for n in (1, 2, 3):
    unseen = sum(gram not in counts[n] for gram in grams(test, n)) / (len(test) - n + 1)
    print(f"{n}-grams: {len(counts[n]):6,} different, {unseen:.0%} of the test's were never seen")
print(counts[3].most_common(5))

# %% [markdown]
# The output shows the problem: three of five test trigrams were never seen. Counting gives them the
# probability 0, and so the whole text has the probability 0. **Smoothing** moves a little probability
# from seen to unseen words. A simple way is a weighted sum of trigrams, bigrams and single words.


# %%
def probability(gram, weights):
    """P(last word | the words before it): a weighted sum of the three tables."""
    *_, b, c = gram
    result = weights[0] * (counts[1][(c,)] + 1) / (len(train) + size)
    if counts[1][(b,)]:
        result += weights[1] * counts[2][(b, c)] / counts[1][(b,)]
    if len(gram) == 3 and counts[2][gram[:2]]:
        result += weights[2] * counts[3][gram] / counts[2][gram[:2]]
    return result


def perplexity(weights):
    """exp(mean negative log-likelihood): as uncertain as a choice among that many equally likely words."""
    surprise = [-math.log(probability(gram, weights)) for gram in grams(test, 3)]
    return math.exp(sum(surprise) / len(surprise))


perplexities = []
for name, weights in {
    "single words": (1, 0, 0),
    "with bigrams": (0.4, 0.6, 0),
    "with trigrams": (0.35, 0.45, 0.2),
}.items():
    perplexities.append(perplexity(weights))
    print(f"{name:15} perplexity {perplexities[-1]:6.1f}")

# %%
figure, axis = plt.subplots(figsize=(5, 2.6))
bars = axis.bar(["1-grams", "1 and 2", "1, 2 and 3"], perplexities)
axis.bar_label(bars, fmt="%.0f")
axis.set_ylabel("perplexity")
plt.show()

# %% [markdown]
# **Perplexity** measures all language models in these chapters. It is 1 for a text that the model knows
# by heart. If every word is equally likely, it is the size of the vocabulary.
#
# ## Writing
#
# You can sample text from a language model. Trigrams look right over three words and make no sense
# after five.

# %%
random.seed(1)
for _ in range(3):
    sentence = ["it", "was"]
    while sentence[-1] != "." and len(sentence) < 20:
        after = [(gram[2], n) for gram, n in counts[3].items() if gram[:2] == (*sentence[-2:],)]
        candidates, weights = zip(*after, strict=True)
        sentence += random.choices(candidates, weights)
    print(" ".join(sentence))

# %% [markdown]
# ## What is missing
#
# In the tables `inspector` and `detective` are as different as `inspector` and `umbrella`: the counts of
# one say nothing about the other. A longer context makes the tables emptier, not better.
# [The next chapter](nnlm.py) gives similar words similar vectors.
