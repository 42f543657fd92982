// Which of a token's numbers its colour shows.
for (const button of document.querySelectorAll('button[data-by]')) {
  button.onclick = () => {
    document.body.className = 'by-' + button.dataset.by;
  };
}
