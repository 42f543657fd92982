// Which prompts are shown: all, those with a wrong answer, those with right and wrong ones.
function isHidden(shown, right) {
  if (shown == 'wrong') return right == 'all';
  if (shown == 'mixed') return right != 'some';
  return false;
}

for (const button of document.querySelectorAll('button[data-show]')) {
  button.onclick = () => {
    for (const prompt of document.querySelectorAll('.sample')) {
      prompt.hidden = isHidden(button.dataset.show, prompt.dataset.right);
    }
  };
}
